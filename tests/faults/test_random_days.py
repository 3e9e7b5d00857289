"""Half an hour of random work, crashes, lost answers and refusals; then calm. The invariants must hold (I1 to I8)."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from shared.model.call import Call as Attempted
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.run import Result, RunStatus
from shared.queue import SendError
from shared.rules.schedules import slots
from shared.rules.sharding import stable_hash
from tests.support import calls, faults
from tests.support.aws import Aws
from tests.support.calls import Call
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

STEPS = 30
SEEDS = range(6)
SCHEDULES: list[dict[str, Any]] = [
    {"cron": "*/3 * * * *"},
    {"cron": "* * * * *", "catch_up": "all"},
    {"every": "50s", "catch_up": "skip"},
    {"every": "4m", "max_runs": 3},
    {"in_s": 0},
    {"in_s": 100},
    {"in_s": 500},
]


class AnyCall(calls.Observer):
    """Number `nth` of the product's calls crashes before or after it, is refused, or has its answer lost."""

    order = calls.FAULTS

    def __init__(self, world: World, kind: str, nth: int) -> None:
        self.world, self.kind, self.left = world, kind, nth
        self.hit: Call | None = None

    def answer(self, call: Call) -> dict[str, Any] | None:
        self.left -= 1
        if self.left != 0:
            return None
        self.hit = call
        if self.kind == "before":
            raise faults.CrashError
        if self.kind == "refused":
            return {
                "Error": {"Code": "ThrottlingException", "Message": "made up"},
                "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {}, "RetryAttempts": 3},
            }
        if self.kind == "lost":
            with calls.unseen(), contextlib.suppress(ClientError):
                faults.repeat(self.world.aws, call)
        return None

    def on_answer(self, call: Call) -> None:
        if call is self.hit and self.kind == "after":
            raise faults.CrashError


@dataclass
class Day:
    """What is done, and what must then be true."""

    world: World
    seed: int
    cancelled: set[str] = field(default_factory=set)  # and not submitted since, answered or not
    paused: dict[str, datetime] = field(default_factory=dict)  # since when, and not resumed or submitted since
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def called(self, call: Attempted) -> Result:
        now = self.world.clock.now()
        about = f"{call.job_id} {call.scheduled_for:%H:%M:%S} attempt {call.attempt}"
        if now < call.scheduled_for:
            self.broken.append(f"I3: {about} at {now}")
        if call.job_id in self.cancelled:
            self.broken.append(f"I5: {about} after the cancel's answer")
        if call.attempt > call.max_attempts:
            self.broken.append(f"I7: {about} of {call.max_attempts}")
        with calls.unseen():
            run = self.world.api.inspect.run(call.job_id, call.scheduled_for)
        if run.status is not RunStatus.RUNNING or run.attempt != call.attempt:
            self.broken.append(f"I2: {about} while the run is {run.status} {run.attempt}")
        paused_at = self.paused.get(call.job_id)
        if paused_at and run.requested_at is None and run.attempts[-1].started_at > paused_at:
            self.broken.append(f"pause: {about} began after the pause of {paused_at:%H:%M:%S}")
        # Runs go side by side: the dice would fall in another order each time.
        fails = stable_hash(f"{self.seed} {call.idempotency_key} {call.attempt}") % 10 < 3
        return failure() if fails else SUCCEED

    def step(self) -> None:
        rest = [self.cancel, self.pause, self.resume, self.change, self.trigger, self.redrive, self.audit]
        do = self.dice.choices([self.submit, self.tick, self.deliver, *rest], [4, 5, 8, 1, 1, 1.5, 1, 1, 1, 0.3])[0]
        with self.trouble():
            do()
        self.world.clock.advance(self.dice.choice([0, 0.5, 1, 7, 20, 45, 60, 70, 200]))

    @contextlib.contextmanager
    def trouble(self) -> Iterator[None]:
        if self.dice.random() < 0.5:
            yield
            return
        kind = self.dice.choice(["before", "after", "refused", "lost"])
        observer = AnyCall(self.world, kind, self.dice.randint(1, 12))
        with calls.observing(observer), contextlib.suppress(faults.CrashError, ClientError, SendError):
            yield

    def submit(self) -> None:
        job_id = self.dice.choice("abcd")
        spec = dict(self.dice.choice(SCHEDULES))
        now = self.world.clock.now()
        if "in_s" in spec:
            spec = {"run_at": (now + timedelta(seconds=spec["in_s"])).isoformat()}
        was_cancelled = job_id in self.cancelled
        self.cancelled.discard(job_id)
        self.paused.pop(job_id, None)
        try:
            self.world.submit(job_id=job_id, max_attempts=self.dice.randint(1, 3), base_s=5, **spec)
        except ConflictError:
            if was_cancelled:
                self.cancelled.add(job_id)

    def cancel(self) -> None:
        job_id = self.dice.choice("abcd")
        with contextlib.suppress(ConflictError, JobNotFoundError):
            view = self.world.cancel(job_id)
            if view.status == "cancelled" and not view.running:
                self.cancelled.add(job_id)

    def pause(self) -> None:
        job_id = self.dice.choice("abcd")
        with contextlib.suppress(ConflictError, JobNotFoundError):
            self.world.pause(job_id)
            self.paused[job_id] = self.world.clock.now()

    def resume(self) -> None:
        job_id = self.dice.choice("abcd")
        self.paused.pop(job_id, None)
        with contextlib.suppress(ConflictError, JobNotFoundError):
            self.world.resume(job_id)

    def change(self) -> None:
        job_id = self.dice.choice("abcd")
        now = self.world.clock.now()
        changes = self.dice.choice(
            [
                {"every": "70s"},
                {"cron": "*/2 * * * *", "max_runs": 4},
                {"run_at": (now + timedelta(seconds=self.dice.choice([0.5, 90, 400]))).isoformat()},
                {"payload": "x" * 600, "retry": {"max_attempts": 2}},
                {"catch_up": "skip", "group": "g", "priority": "high"},
            ]
        )
        with contextlib.suppress(ConflictError, JobNotFoundError):
            self.world.patch(job_id, **changes)

    def trigger(self) -> None:
        with contextlib.suppress(ConflictError, JobNotFoundError):
            self.world.trigger(self.dice.choice("abcd"))

    def redrive(self) -> None:
        with contextlib.suppress(ConflictError, JobNotFoundError):
            self.world.api.again.redrive_all(self.dice.choice("abcd"), self.world.clock.now())

    def tick(self) -> None:
        self.world.tick()

    def deliver(self) -> None:
        self.world.deliver()

    def audit(self) -> None:
        self.world.audit()

    def calm(self) -> None:
        """No more trouble: every minute a tick, until all that was begun has come to its end."""
        for job_id in "abcd":
            with contextlib.suppress(ConflictError, JobNotFoundError):
                self.world.resume(job_id)
        self.paused.clear()
        for _ in range(4):
            for _ in range(5):
                self.world.clock.advance(60)
                self.world.tick()
                self.world.deliver()
            self.world.audit()
            self.world.clock.advance(5)
            self.world.deliver()
        self.world.clock.advance(800)  # a visibility: what a dead executor held comes back
        self.world.tick()
        self.world.deliver()
        for _ in range(5):
            self.world.clock.advance(66)
            self.world.tick()
            self.world.deliver()

    def judge(self) -> list[str]:
        now = self.world.clock.now()
        found = list(self.broken)
        if self.world.items("claim#"):
            found.append("I6: the journal is not empty")
        for item in self.world.items("job"):
            if "due_key" in item and item["due_at"]["S"] < f"{now - timedelta(minutes=2):%Y-%m-%dT%H:%M:%S}":
                found.append(f"I8: {item['pk']['S']} is overdue since {item['due_at']['S']}")
        ids = {item["pk"]["S"].removeprefix("job#") for item in self.world.items("job")}
        return found + [trouble for job_id in sorted(ids) for trouble in self._of_job(job_id, now)]

    def _of_job(self, job_id: str, now: datetime) -> Iterator[str]:
        view, runs = self.world.show(job_id), self.world.runs(job_id)
        for run in runs:
            numbers = [attempt.attempt for attempt in run.attempts]
            if numbers != list(range(1, run.attempt + 1)):
                yield f"I7: {job_id} {run.scheduled_for} has attempts {numbers}, the latest {run.attempt}"
            if run.status in (RunStatus.RUNNING, RunStatus.FAILED) and run.scheduled_for < now - timedelta(minutes=10):
                yield f"I1: {job_id} {run.scheduled_for} is still {run.status}"
        if view.job.status != "scheduled":
            return
        spans = [(run.scheduled_for, run.missed_until or run.scheduled_for) for run in runs]
        schedule, since = view.job.spec.schedule, view.job.changed_at
        due = [schedule.run_at] if schedule.run_at else slots(schedule, job_id, since, now, schedule.max_runs or 9999)
        for slot in due:
            is_old = slot < now - timedelta(minutes=3)
            if is_old and not any(first <= slot <= last for first, last in spans):
                counted = schedule.max_runs is not None and view.job.due_at is None
                if not counted or slot <= (view.job.claimed_until or now):
                    yield f"I1: {job_id} {slot} left no trace"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_invariants_hold_through_a_day_of_trouble(aws: Aws, clock: ManualClock, seed: int) -> None:
    day = Day(World(aws, clock), seed)
    day.world.target.script = day.called
    day.world.tick()
    for _ in range(STEPS):
        day.step()
    day.calm()
    assert day.judge() == []
