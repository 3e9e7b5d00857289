"""How a tick grows with the jobs in the table, the jobs that are due, and the shards (figures: docs/performance.md).

    .venv/bin/python -m bench.growth [--most 10000]

By counts: requests and units on the table in memory, whose answers are pages of 1 MB as DynamoDB's are, and the CPU of
Duetime's own code, what the table takes for its answers subtracted. The local AWS's index query reads its whole table,
so its clock would show that and nothing else. Memory: on a table that keeps nothing and makes up what is due page by
page, so that all that grows is the tick's own; without boto3, which holds one answer at a time.
"""

import gc
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from unittest import mock

from bench.counting import Counts
from bench.page import markdown, options, publish
from bench.stack import START, job, world_of, write_jobs
from shared.store.codec import job_item
from tests.support import memory_backend, memory_dynamodb
from tests.support.aws import Aws
from tests.support.aws_rules_items import item_bytes
from tests.support.clocks import ManualClock
from tests.support.world import World

PAGE_ITEMS = 6_500  # of 160 bytes: 1 MB, where DynamoDB cuts
LATER = START + timedelta(days=7)
ON_PAPER = (100_000, 1_000_000)


@dataclass
class Watched:
    """A client in memory: counts its requests, and how long this thread's CPU is inside it."""

    client: Any
    counts: Counts
    inside_s: list[float]
    pages: dict[str, int] = field(default_factory=dict)  # units of the journal's pages that are there, by name

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.client, name)

        def watched(**params: Any) -> Any:
            begun = time.thread_time()
            answer = operation(**params)
            self.inside_s[0] += time.thread_time() - begun
            begun = time.thread_time()
            self.counts.add(name, params, answer | self._consumed(name, params))
            self.inside_s[0] += time.thread_time() - begun
            return answer

        return watched

    def _consumed(self, name: str, params: dict[str, Any]) -> dict[str, Any]:
        """What DynamoDB would say of a tick's write: a unit for each KB of a page, one of all else."""
        units = 1
        if name == "put_item":
            name, size = params["Item"]["sk"]["S"], -(-item_bytes(params["Item"]) // 1024)
            units = max(size, self.pages.get(name, 0))  # a page that is written over counts, if it is larger
            self.pages[name] = size
        elif name == "delete_item":
            units = self.pages.pop(params["Key"]["sk"]["S"])
        elif name == "batch_execute_statement":
            units = len(params["Statements"])
        return {"ConsumedCapacity": {"CapacityUnits": float(units)}}


@dataclass(frozen=True)
class Tick:
    """One minute's tick of all shards."""

    requests: int
    writes: float
    reads: float
    cpu_s: float
    claimed: int


def tick(waiting: int, due: int, shards: int) -> Tick:
    """Ticks of `shards` with `due` jobs that they claim and `waiting` of another week; the second tick of each."""
    clock = ManualClock(START)
    aws = memory_backend.create(clock.now)
    write_jobs(aws, (job(n, LATER + timedelta(seconds=n)) for n in range(waiting)), shards)
    world_of(aws, shards).tick()  # a shard's first tick looks back further
    write_jobs(aws, (job(waiting + n) for n in range(due)), shards)
    counts, inside_s = Counts(), [0.0]
    under = replace(
        aws,
        dynamodb=Watched(aws.dynamodb, counts, inside_s),  # type: ignore[arg-type]
        sqs=Watched(aws.sqs, counts, inside_s),  # type: ignore[arg-type]
    )
    world = World(under, clock, shards=shards)
    clock.advance(60)
    with mock.patch.object(memory_dynamodb, "PAGE_ITEMS", PAGE_ITEMS):
        gc.collect()
        gc.freeze()  # the table in memory is no work for the tick's garbage collections
        begun = time.thread_time()
        claimed = sum(one.claimed.won for one in world.tick())
        cpu_s = time.thread_time() - begun - inside_s[0]
        gc.unfreeze()
    looks = counts.idle["query"] / 2 + shards / 2  # half a unit the index's, one the journal's
    return Tick(
        requests=counts.requests.total() + counts.idle.total(),
        writes=counts.writes + counts.idle["update_item"],
        reads=counts.reads + looks,
        cpu_s=cpu_s,
        claimed=claimed,
    )


class Endless:
    """A table and a queue that keep nothing: `due` jobs in the bucket of DUE, made up page by page."""

    def __init__(self, due: int) -> None:
        self._due = due
        self._item = job_item(job(0), 0)

    def query(self, **params: Any) -> dict[str, Any]:
        if params["ExpressionAttributeValues"].get(":bucket") != self._item["due_key"]:
            return {"Items": []}
        first = int(params.get("ExclusiveStartKey", {"n": 0})["n"])
        last = min(first + PAGE_ITEMS, self._due)
        items = [self._item | {"pk": {"S": f"job#bench-{n:08d}"}} for n in range(first, last)]
        return {"Items": items} | ({"LastEvaluatedKey": {"n": last}} if last < self._due else {})

    def batch_execute_statement(self, **params: Any) -> dict[str, Any]:
        return {"Responses": [{} for _ in params["Statements"]]}

    def send_message_batch(self, **params: Any) -> dict[str, Any]:
        return {"Successful": [{"Id": entry["Id"]} for entry in params["Entries"]]}

    def update_item(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"epoch": {"N": "1"}}}

    def put_item(self, **_: Any) -> dict[str, Any]:
        return {}

    delete_item = put_item


def memory(due: int) -> tuple[float, float]:
    """The most that a tick of `due` jobs holds, in MB beside what there was before; and its CPU, in seconds a job."""
    endless: Any = Endless(due)
    clock = ManualClock(START)
    aws = Aws("memory", endless, endless, "duetime", dict(memory_backend.QUEUES), memory_backend.DEAD_LETTERS)
    world = World(aws, clock)
    begun = time.thread_time()
    assert world.tick()[0].claimed.won == due
    cpu_s = time.thread_time() - begun
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    world.tick()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return peak / 1e6, cpu_s / due


def rows(most: int) -> Iterator[list[str]]:
    """One axis after the other; `most` jobs at most are really there."""
    for waiting in [0, 1_000, most]:
        yield _row(waiting, tick(waiting, 1_000, 1), 1_000, 1)
    for waiting in ON_PAPER:  # no request of a tick names a bucket that is not due: the same requests
        yield _row(waiting, tick(0, 1_000, 1), 1_000, 1, on_paper=True)
    for due in (0, 100, most):
        yield _row(0, tick(0, due, 1), due, 1)
    for shards in (4, 16, 64):
        yield _row(0, tick(0, 1_000, shards), 1_000, shards)


def _row(waiting: int, one: Tick, due: int, shards: int, on_paper: bool = False) -> list[str]:
    assert one.claimed == due
    cells = [f"{waiting:,}" + " (on paper)" * on_paper, f"{due:,}", f"{shards}", f"{one.requests:,}"]
    return [*cells, f"{one.writes:,.0f}", f"{one.reads:,.1f}", "" if on_paper else f"{one.cpu_s * 1e3:,.0f} ms"]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--most", type=int, default=10_000)
    chosen = parser.parse_args()
    head = ["jobs waiting", "due", "shards", "requests", "write units", "read units", "own CPU"]
    peaks = [(due, *memory(due)) for due in (1_000, 10_000, 10 * chosen.most)]
    sizes = [[f"{due:,}", f"{peak:.1f} MB", f"{cpu_s * 1e6:.0f} µs"] for due, peak, cpu_s in peaks]
    tables = {
        "growth": markdown(head, list(rows(chosen.most))),
        "memory": markdown(["due at one tick", "most held at once", "own CPU a job"], sizes),
    }
    publish(tables, chosen.write)


if __name__ == "__main__":
    main()
