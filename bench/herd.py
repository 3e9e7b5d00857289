"""A herd at 09:00 on paper: many jobs due at one second, through ticks, queue and executors. Never calls AWS.

    .venv/bin/python -m bench.herd --jobs 1000000 --shards 16 --concurrency 1000

Numbers in, numbers out, the same for the same `--seed`; docs/scale.md says where each comes from and what is left out.
Times are seconds from the due time (before it: negative), kept in whole milliseconds.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from heapq import heapify, heapreplace
from math import ceil
from random import Random

from infra.options import Options
from shared.flows.claims import PAGE_CLAIMS
from shared.queue import BATCH
from shared.store.jobs import STATEMENTS

TICK_EVERY_S = 60
TICK_WORKS_S = 45  # infra/ticker.py: its timeout of 60 s; functions/tick/handler.py stops 15 s before
JOURNAL_UNITS = 0.03  # of a job in a full page, 2.2 KB, that is written over the one before
DEFAULTS = Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Herd:
    """What goes in: the jobs, the choices of the deployment, what the calls are assumed to take, AWS's limits."""

    jobs: int
    shards: int = DEFAULTS.shards
    horizon_s: int = DEFAULTS.horizon_s
    concurrency: int = DEFAULTS.executor_concurrency  # of the one priority that all jobs have
    run_s: float = 1.0  # a handler
    run_spread: float = 0.2  # a batch takes run_s × (1 ± up to this), drawn
    tick_phase_s: float | None = None  # where in its minute each tick starts; None: anywhere, drawn for each shard
    warm: int = 5  # environments that need no cold start
    # Assumed on AWS: one call after the other
    look_s: float = 0.1  # a tick before its first page: lease, journal, index
    write_s: float = 0.006  # PutItem of a journal page
    claim_s: float = 0.020  # BatchExecuteStatement of 25
    send_s: float = 0.015  # SendMessageBatch of 10
    cpu_s: float = 0.0006  # a tick's own work for a job, with 1024 MB
    batch_s: float = 0.15  # an executor's work around a batch
    cold_start_s: float = 1.0
    # Limits of AWS
    index_units_per_s: int = 1_000  # writes of one partition; a bucket of a shard is counted as one
    table_units_per_s: int = 40_000  # writes of the table, by quota; of a new table 4,000
    first_batches: int = 5  # of an SQS mapping, at once
    more_batches_per_min: int = 300
    first_environments: int = 1_000  # of a function, at once
    more_environments_per_s: int = 100
    account_concurrency: int = 1_000
    in_flight: int = 120_000  # messages of one queue
    seed: int = 9


Times = Counter[int]  # millisecond → how many


@dataclass(slots=True)
class Stampede:
    """What comes out, each as a count by time."""

    herd: Herd
    claimed: Times = field(default_factory=Counter)  # jobs whose message was sent
    visible: Times = field(default_factory=Counter)  # messages that can be received
    taken: Times = field(default_factory=Counter)  # messages in the hands of an executor
    started: Times = field(default_factory=Counter)  # runs
    began: Times = field(default_factory=Counter)  # batches
    ended: Times = field(default_factory=Counter)

    @property
    def last_claim_s(self) -> float:
        return max(self.claimed) / 1000

    @property
    def claimed_late(self) -> int:
        """Jobs claimed only after they were due."""
        return sum(count for at, count in self.claimed.items() if at > 0)

    @property
    def last_start_s(self) -> float:
        return max(self.started) / 1000

    @property
    def most_batches(self) -> int:
        """The highest concurrency reached."""
        return max(count for _, count in level(self.began, self.ended))

    @property
    def most_waiting(self) -> int:
        """The longest queue: messages visible and not taken."""
        return max(count for _, count in level(self.visible, self.taken))

    def late_s(self, share: float) -> float:
        """The lateness that `share` (0 to 1) of the runs do not exceed; nearest rank."""
        rank = max(1, ceil(share * self.started.total()))
        for at, count in sorted(self.started.items()):
            rank -= count
            if rank <= 0:
                return at / 1000
        raise ValueError(f"share must be 0 to 1, not {share}")

    def later_than(self, seconds: float) -> int:
        """Runs that started more than `seconds` after they were due."""
        return sum(count for at, count in self.started.items() if at > seconds * 1000)


def run(herd: Herd) -> Stampede:
    """The whole of it: claims by tick, then executors."""
    out = claim(herd)
    _execute(out, Random(herd.seed + 1))
    return out


def claim(herd: Herd) -> Stampede:
    """The ticks alone. Jobs are spread evenly: a hash leaves a shard √(jobs ÷ shards) more or less."""
    out, random = Stampede(herd), Random(herd.seed)
    for shard in range(herd.shards):
        drawn = random.random() * TICK_EVERY_S
        phase = drawn if herd.tick_phase_s is None else herd.tick_phase_s
        _claim(out, herd.jobs // herd.shards + (shard < herd.jobs % herd.shards), phase)
    return out


def level(up: Mapping[int, int], down: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """(millisecond, how many there are), at each change; at one millisecond those that go, go first."""
    now = 0
    for at in sorted(up.keys() | down.keys()):
        now += up.get(at, 0) - down.get(at, 0)
        yield at, now


def _claim(out: Stampede, left: int, phase_s: float) -> None:
    """The ticks of one shard: from the horizon on, page by page, each within its time."""
    herd = out.herd
    tick = phase_s - herd.horizon_s
    while left:
        now = tick + herd.look_s
        while left and now < tick + TICK_WORKS_S:
            page = min(left, PAGE_CLAIMS)
            now = _page(out, page, now)
            left -= page
        tick += TICK_EVERY_S


def _page(out: Stampede, jobs: int, begun: float) -> float:
    """Journal, claims, sends; when it is done. Throttling stretches it to what partition and table take."""
    herd = out.herd
    now = begun + herd.write_s + ceil(jobs / STATEMENTS) * herd.claim_s + jobs * herd.cpu_s
    for first in range(0, jobs, BATCH):
        count = min(BATCH, jobs - first)
        delay = max(0, ceil(-now))  # shared/queue.py: whole seconds, never early
        now += herd.send_s
        out.claimed[_ms(now)] += count
        out.visible[_ms(now + delay)] += count
    # One unit a job in the index, in its old place: the new one of a recurring job is another key. One in the table,
    # of which all shards take together.
    by_index = jobs / herd.index_units_per_s
    by_table = jobs * (1 + JOURNAL_UNITS) * herd.shards / herd.table_units_per_s
    return max(now, begun + by_index, begun + by_table)


def _execute(out: Stampede, random: Random) -> None:
    """Executors take batches as they become free; more of them come as fast as mapping and function allow."""
    herd = out.herd
    arrivals = sorted(out.visible.items())
    opening = arrivals[0][0] / 1000
    slots = [(opening + _opens_after_s(herd, n), n >= herd.warm) for n in range(_most_batches(herd))]
    heapify(slots)
    waiting = next_arrival = 0
    now = table_free = opening
    while waiting or next_arrival < len(arrivals):
        free, cold = slots[0]  # of those free at once a warm one first
        now = max(now, free)
        if not waiting:
            now = max(now, arrivals[next_arrival][0] / 1000)
        while next_arrival < len(arrivals) and arrivals[next_arrival][0] / 1000 <= now:
            waiting += arrivals[next_arrival][1]
            next_arrival += 1
        batch = min(BATCH, waiting)
        waiting -= batch
        table_free = max(table_free, now)
        starts = table_free + (herd.cold_start_s if cold else 0.0)
        table_free += 2 * batch / herd.table_units_per_s  # a start and an end each
        ends = starts + herd.batch_s + herd.run_s * (1 + herd.run_spread * (2 * random.random() - 1))
        heapreplace(slots, (ends, False))
        out.taken[_ms(now)] += batch
        out.started[_ms(starts)] += batch
        out.began[_ms(now)] += 1
        out.ended[_ms(ends)] += 1


def _most_batches(herd: Herd) -> int:
    return min(herd.concurrency, herd.account_concurrency, herd.in_flight // BATCH)


def _opens_after_s(herd: Herd, number: int) -> float:
    """When the batch `number` (from 0) may run beside the others, from the first message on."""
    by_mapping = max(0, number + 1 - herd.first_batches) * 60 / herd.more_batches_per_min
    by_function = max(0, number + 1 - herd.first_environments) / herd.more_environments_per_s
    return max(by_mapping, by_function)


def _ms(seconds: float) -> int:
    return ceil(seconds * 1000 - 1e-6)  # never earlier than it is


HEADER = (
    "| jobs | shards | horizon | concurrency | run | last claim | claimed late | p50 late | p99 late | last start "
    "| longest queue | batches at once |\n" + "|---" * 12 + "|"
)


def row(out: Stampede) -> str:
    """One line of the table that HEADER begins."""
    herd = out.herd
    cells = [
        f"{herd.jobs:,}",
        f"{herd.shards}",
        f"{herd.horizon_s} s",
        f"{herd.concurrency:,}",
        f"{herd.run_s:g} s",
        f"{out.last_claim_s:+,.0f} s",
        f"{out.claimed_late:,}",
        f"{out.late_s(0.5):,.1f} s",
        f"{out.late_s(0.99):,.1f} s",
        f"{out.last_start_s:,.1f} s",
        f"{out.most_waiting:,}",
        f"{out.most_batches:,}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for one in fields(Herd):
        kind = int if one.type is int else float
        default = None if one.name == "jobs" else one.default
        name = "--" + one.name.replace("_", "-")
        options.add_argument(name, type=kind, default=default, required=one.name == "jobs")
    print(HEADER)
    print(row(run(Herd(**vars(options.parse_args())))))


if __name__ == "__main__":
    main()
