"""How near the scheduler comes to the bare AWS calls that it makes (figures: docs/performance.md). It judges nothing.

    .venv/bin/python -m bench.floor [--jobs 10000] [--runs 5]

The scheduler works on a fresh table and its requests are kept; then, on another fresh table with the same jobs, the
same requests are made again in a bare loop: nothing is planned, encoded or read there, only sent. The two take turns.

Tick: lease, index, journal, claims, sends of jobs that are all due at one second. Execute: hide, start, read, finish of
their runs, ten at a time, with a target in this process that does nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.measuring import Spent, measured, ratio
from bench.page import markdown, options, publish
from bench.stack import DUE, Call, batches, emulator_running, fresh, job, world_of, write_jobs
from shared.flows.execute import Received
from shared.model.call import Call as TargetCall
from shared.model.message import Message
from shared.model.run import Outcome, Result
from shared.queue import message_text
from shared.targets.target import Signals
from shared.wiring import base
from tests.support.aws import Aws, all_items
from tests.support.emulator import Emulator
from tests.support.world import World

SHARDS = (1, 4, 16)
DONE = Result(outcome=Outcome.SUCCEEDED, result="null")


class EmptyTarget:
    """Succeeds at once."""

    def call(self, call: TargetCall, signals: Signals) -> Result:
        del call, signals
        return DONE


@dataclass
class Pairs:
    """Runs of the scheduler, and of the bare loop after each."""

    name: str
    jobs: int
    ours: list[Spent] = field(default_factory=list)
    bare: list[Spent] = field(default_factory=list)
    requests: int = 0

    def row(self) -> list[str]:
        """The scheduler's rate in shares of the bare loop's, by the wall and by CPU, and what it adds to a job."""
        added_s = median(one.user_s - other.user_s for one, other in zip(self.ours, self.bare, strict=True)) / self.jobs
        return [
            self.name,
            f"{self.requests / self.jobs:.2f}",
            f"{ratio(self.bare, self.ours, lambda one: one.wall_s):.2f}",
            f"{ratio(self.bare, self.ours, lambda one: one.user_s):.2f}",
            f"{median(one.user_s for one in self.bare) / self.jobs * 1e3:.3f} ms",
            f"{added_s * 1e3:.3f} ms",
        ]


def tick(clients: base.Clients, jobs: int, shards: int, runs: int) -> Pairs:
    """The tick of every shard, one after the other."""
    pairs = Pairs(f"tick, {shards} shard{'s' * (shards > 1)}", jobs)
    for _ in range(runs):
        kept: list[Call] = []
        with fresh(clients) as aws:
            world = _ready(aws, jobs, shards, kept)
            with measured() as spent:
                ticked = world.tick()
            assert sum(one.claimed.sent for one in ticked) == jobs
            pairs.ours.append(spent)
        pairs.requests = len(kept)
        with fresh(clients) as other:
            _ready(other, jobs, shards, [])
            prepared = _bound(clients, _renamed(kept, aws, other))
            with measured() as spent:
                for operation, params in prepared:
                    operation(**params)
            pairs.bare.append(spent)
            assert waiting(other) == jobs
    return pairs


def execute(server: Emulator, clients: base.Clients, jobs: int, runs: int) -> Pairs:
    """Batches of ten, one after the other; the bare loop makes a batch's calls in their order."""
    pairs = Pairs("execute", jobs)
    for _ in range(runs):
        kept: list[Call] = []
        with fresh(clients) as aws:
            received = list(_received(server, aws, jobs))
            world = world_of(aws, kept=kept)
            world.clock.set(DUE)
            executor = world.new_executor(EmptyTarget())
            with measured() as spent:
                handled = [one for batch in received for one in executor.run(batch)]
            assert [one.ended.outcome for one in handled] == [Outcome.SUCCEEDED] * jobs
            pairs.ours.append(spent)
        pairs.requests = len(kept)
        with fresh(clients) as other:
            hides = [_hide(other, batch) for batch in _received(server, other, jobs)]
            calls: list[list[tuple[Any, dict[str, Any]]]] = []
            for service, operation, params in _renamed(kept, aws, other):
                if service == "sqs":  # the hide that begins a batch; its receipts are of the other queue
                    calls.append([])
                else:
                    calls[-1].append((getattr(clients.dynamodb, operation), params))
            work = list(zip(hides, calls, strict=True))
            with measured() as spent:
                for hide, of_batch in work:
                    clients.sqs.change_message_visibility_batch(**hide)
                    for make, params in of_batch:
                        make(**params)
            pairs.bare.append(spent)
            ended = [item for item in all_items(other) if item["sk"]["S"].startswith("run#")]
            assert [item["status"]["S"] for item in ended] == ["succeeded"] * jobs
    return pairs


def _ready(aws: Aws, jobs: int, shards: int, kept: list[Call]) -> World:
    """Jobs that are due, and shards that were ticked before: a first tick looks back further."""
    world = world_of(aws, shards, kept)
    world.tick()
    write_jobs(aws, map(job, range(jobs)), shards)
    kept.clear()
    return world


def _bound(clients: base.Clients, kept: Sequence[Call]) -> list[tuple[Any, dict[str, Any]]]:
    return [(getattr(getattr(clients, service), operation), params) for service, operation, params in kept]


def _renamed(kept: Sequence[Call], before: Aws, now: Aws) -> list[Call]:
    """The same requests for another table and other queues; their names differ in the suffix alone."""
    suffix, new = (one.table.removeprefix("duetime-") for one in (before, now))
    return [(service, operation, _replaced(params, suffix, new)) for service, operation, params in kept]


def _replaced(value: Any, before: str, now: str) -> Any:
    """`value` with `before` replaced in all texts within, names too."""
    if isinstance(value, dict):
        return {_replaced(name, before, now): _replaced(one, before, now) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, before, now) for one in value]
    return value.replace(before, now) if isinstance(value, str) else value


def _received(server: Emulator, aws: Aws, jobs: int) -> Iterator[list[Received]]:
    """The messages of jobs that a tick has claimed, taken from the queue, ten at a time."""
    server.set_time(DUE)
    write_jobs(aws, map(job, range(jobs)))
    for ten in batches(map(job, range(jobs)), 10):
        entries: Any = [
            {"Id": str(place), "MessageBody": message_text(_message(one.job_id))} for place, one in enumerate(ten)
        ]
        aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=entries)
    while batch := world_of(aws).receive("normal"):
        yield batch


def _message(job_id: str) -> Message:
    return Message(job_id=job_id, scheduled_for=DUE, revision=1, fence=1, lease_s=65)


def _hide(aws: Aws, batch: Sequence[Received]) -> dict[str, Any]:
    entries = [
        {"Id": str(place), "ReceiptHandle": one.receipt, "VisibilityTimeout": 65} for place, one in enumerate(batch)
    ]
    return {"QueueUrl": aws.queue_url, "Entries": entries}


def waiting(aws: Aws) -> int:
    """Messages in the normal queue, delayed ones included."""
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
    answer = aws.sqs.get_queue_attributes(QueueUrl=aws.queue_url, AttributeNames=names)
    return sum(int(count) for count in answer["Attributes"].values())


HEAD = ["", "requests a job", "rate ÷ bare", "CPU: bare ÷ Duetime", "CPU a job, bare", "added by Duetime"]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    with emulator_running() as (server, clients):
        rows = [tick(clients, chosen.jobs, shards, chosen.runs).row() for shards in SHARDS]
        rows.append(execute(server, clients, chosen.jobs, chosen.runs).row())
    publish({"floor": f"{chosen.jobs:,} jobs, medians of {chosen.runs}:\n\n{markdown(HEAD, rows)}"}, chosen.write)


if __name__ == "__main__":
    main()
