"""The lives of jobs whose cost is counted, lived by hand on the local AWS: submit, ticks, runs. It judges nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bench.counting import Counts, counted
from bench.stack import PAYLOAD, START
from shared.flows.batch import Wish
from shared.model.job import JobSpec, Schedule, Target
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.emulator import Emulator
from tests.support.world import World

JOBS = 100
MANY = 1_000  # due at once: ten pages, of which only the last is removed
FIELDS: dict[str, Any] = {"payload": PAYLOAD, "name": "an ordinary job"}


@dataclass
class Life:
    """The system, its requests counted; `batches` that an executor was handed."""

    world: World
    counts: Counts
    batches: int = 0

    def at(self, moment: datetime) -> None:
        """Let it be `moment`: one tick, then all that is due."""
        self.world.clock.set(moment)
        self.world.tick()
        while batch := self.world.receive():
            self.batches += 1
            self.world.acknowledge(self.world.executor.run(batch))

    def after(self, seconds: float) -> None:
        self.at(self.world.clock.now() + timedelta(seconds=seconds))


def one_off_by_tick(life: Life) -> int:
    for _ in range(MANY):
        life.world.submit(run_at=_text(START + timedelta(seconds=600)), **FIELDS)
    life.after(420)
    life.after(180)
    return MANY


def one_off_by_submit(life: Life) -> int:
    for _ in range(JOBS):
        life.world.submit(run_at=_text(START + timedelta(seconds=5)), **FIELDS)
    life.after(5)
    return JOBS


def batches_of_100(life: Life) -> int:
    for first in range(0, MANY, 100):
        names = [f"batched-{n}" for n in range(first, first + 100)]
        life.world.api.batch.submit([Wish(name, _spec(name)) for name in names], START)
    life.after(420)
    life.after(180)
    return MANY


def recurring(life: Life) -> int:
    return _recurring(life, every="10m")


def every_10_seconds(life: Life) -> int:
    for _ in range(JOBS // 10):
        life.world.submit(every="10s", start_at=_text(START + timedelta(seconds=600)), **FIELDS)
    for _ in range(20):
        life.after(60)
    return len(life.world.target.calls)


def overlap_skip(life: Life) -> int:
    return _recurring(life, every="10m", overlap="skip")


def group_with_limit(life: Life) -> int:
    life.world.api.groups.limit("tenant", 10, START)
    for _ in range(JOBS):
        life.world.submit(run_at=_text(START + timedelta(seconds=600)), group="tenant", **FIELDS)
    life.after(420)
    life.after(180)
    return JOBS


def child(life: Life) -> int:
    life.world.submit(job_id="parent", run_at=_text(START + timedelta(seconds=500)), **FIELDS)
    for _ in range(JOBS):
        life.world.submit(run_at=_text(START + timedelta(seconds=600)), depends_on=("parent",), **FIELDS)
    life.after(420)
    life.after(80)
    life.after(100)
    return JOBS


def _recurring(life: Life, every: str, **fields: Any) -> int:
    for _ in range(MANY):
        life.world.submit(every=every, start_at=_text(START + timedelta(seconds=600)), **FIELDS, **fields)
    life.counts.forget()  # the submits are paid once, the runs for ever
    for _ in range(2):
        life.after(420)
        life.after(180)
    return len(life.world.target.calls)


def begin(server: Emulator, aws: Aws) -> Life:
    """A life that has not begun: it is START."""
    counts = Counts()
    world = World(counted(aws, counts), ManualClock(START, server.set_time))
    world.aws = aws  # what the harness itself asks is not counted
    world.clock.set(START)
    return Life(world, counts)


def _spec(job_id: str) -> JobSpec:
    return JobSpec(
        job_id=job_id,
        name="an ordinary job",
        target=Target(kind="python", params={"handler": "demo.echo"}),
        payload=PAYLOAD,
        schedule=Schedule(run_at=START + timedelta(seconds=600)),
    )


def _text(moment: datetime) -> str:
    return moment.isoformat()


LIVES: dict[str, Callable[[Life], int]] = {
    "one-off, claimed by a tick": one_off_by_tick,
    "one-off, claimed by its submit (due in 5 s)": one_off_by_submit,
    "one-off, submitted 100 a call": batches_of_100,
    "recurring, a run": recurring,
    "recurring every 10 s, a run (with its share of the submit)": every_10_seconds,
    "recurring, `overlap=skip`, a run": overlap_skip,
    "one-off in a group with `max_running` 10": group_with_limit,
    "one-off that depends on one parent": child,
}
