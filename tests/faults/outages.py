"""Outages: what stops for a while, and what the system has made of it afterwards. Each is a function with `@outage`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.faults.checker import Promise, Violation, check
from tests.faults.history import Called, History
from tests.faults.system import Hook, Process, Step, System, deployed
from tests.support.fault_injection import throttled
from tests.support.world import SUCCEED, failure

HOUR_S, DAY_S = 3600.0, 86400.0


@dataclass(frozen=True)
class Outage:
    """A story with an outage in it. `audited`: the hourly audit is part of what makes good."""

    name: str
    story: Callable[[System], None]
    promise: Promise
    settle_s: float
    audited: bool


OUTAGES: dict[str, Outage] = {}


def outage(name: str, *, late_s: float, settle_s: float = 1200, audited: bool = False, **promise: Any) -> Any:
    def register(story: Callable[[System], None]) -> Callable[[System], None]:
        OUTAGES[name] = Outage(name, story, Promise(late_s=late_s, **promise), settle_s, audited)
        return story

    return register


@dataclass(frozen=True)
class Weathered:
    """What came of one outage. `late_s`: the latest first call; `most_steps`: of one process, after the outage."""

    name: str
    late_s: float
    most_steps: int
    calls: int
    violations: tuple[Violation, ...]


class _Counting(Hook):
    """Counts the steps of each process; while `is_throttled`, the table refuses everything."""

    def __init__(self) -> None:
        self.steps: dict[Process, int] = {}
        self.is_throttled = False
        self.call_takes_s = 0.0
        self.passes: Callable[[float], object] = lambda seconds: None

    def before(self, step: Step) -> None:
        self.steps[step.process] = self.steps.get(step.process, 0) + 1
        if self.call_takes_s:
            self.passes(self.call_takes_s)

    def answer(self, step: Step) -> None:
        if self.is_throttled and step.call is not None and step.call.service == "dynamodb":
            raise throttled()


def _counting(system: System) -> _Counting:
    assert isinstance(system.hook, _Counting)
    return system.hook


def run(one: Outage) -> tuple[Weathered, History]:
    """One outage, judged."""
    hook = _Counting()
    with deployed(hook) as system:
        hook.passes = system.clock.advance
        system.audit_every_s = HOUR_S if one.audited else None
        one.story(system)
        system.settle(one.settle_s)
        history = system.end()
    calls = history.of(Called)
    late_s = max(((call.at - call.scheduled_for).total_seconds() for call in calls if call.attempt == 1), default=0.0)
    most = max(hook.steps.values())
    return Weathered(one.name, late_s, most, len(calls), tuple(check(history, one.promise))), history


def every_outage() -> Iterator[Weathered]:
    for one in OUTAGES.values():
        yield run(one)[0]


def _jobs(system: System, near_s: float, far_s: float) -> None:
    """A one-off due during the outage, one due after it, and a recurring job."""
    system.submit_job("during", in_s=near_s)
    system.submit_job("after", in_s=far_s)
    system.submit_job("often", every_s=600)


def _end(system: System, *job_ids: str) -> None:
    """What would go on for ever is cancelled, and nothing of it is left a while later."""
    for job_id in job_ids:
        system.cancel_job(job_id)
    system.pass_s(1000)


@outage("no tick for 3 minutes", late_s=1)
def three_minutes(system: System) -> None:
    """The horizon is longer: no job is late."""
    _jobs(system, 500, 700)
    system.submit_job("dense", every_s=60)
    system.pass_s(200)
    system.pass_s(200, ticks=False)
    system.pass_s(1500)
    _end(system, "often", "dense")


@outage("no tick for 3 hours", late_s=3 * HOUR_S + 60, ticks=2)
def three_hours(system: System) -> None:
    _jobs(system, 1800, 4 * HOUR_S)
    system.pass_s(400)
    system.pass_s(3 * HOUR_S, ticks=False)
    system.pass_s(2 * HOUR_S)
    _end(system, "often")


@outage("no tick for 14 days", late_s=14 * DAY_S + 60)
def fourteen_days(system: System) -> None:
    """A job each minute misses 20,160 times: `latest` makes one late run of it, and one record."""
    system.submit_job("during", in_s=1800)
    system.submit_job("minutely", every_s=60)
    system.pass_s(200)
    system.pass_s(14 * DAY_S, ticks=False)
    _counting(system).call_takes_s = 0.004  # so that a tick comes to its end of time
    system.pass_s(1200)
    _counting(system).call_takes_s = 0
    _end(system, "minutely")


@outage("the queue is purged", late_s=HOUR_S + 16 * 60, settle_s=3 * HOUR_S, audited=True)
def purged(system: System) -> None:
    """Only the audit can know."""
    system.submit_job("once", in_s=200)
    system.submit_job("often", every_s=120, runs=3)
    system.pass_s(10)
    system.queue.messages.clear()


@outage("no executor for a day", late_s=DAY_S + 700, settle_s=2 * HOUR_S, ticks=2)
def dead_executor(system: System) -> None:
    _jobs(system, 1000, DAY_S + 1000)
    system.submit_job("cancelled", in_s=3000)
    system.pass_s(DAY_S, deliveries=False)
    system.cancel_job("cancelled")
    system.pass_s(2 * HOUR_S)
    _end(system, "often")


@outage("no executor for a day, with audits", late_s=DAY_S + 700, settle_s=3 * HOUR_S, ticks=2, audited=True)
def dead_executor_audited(system: System) -> None:
    """The audit sends again and again what nobody takes: each a duplicate that the start stops."""
    system.submit_job("once", in_s=1000)
    system.pass_s(DAY_S, deliveries=False)
    system.pass_s(HOUR_S)


@outage("no tick for 3 hours, with a pause and another schedule in it", late_s=3 * HOUR_S + 60, ticks=2)
def three_hours_changed(system: System) -> None:
    """What no tick had claimed when a user spoke is brought by the resume, or recorded."""
    system.submit_job("paused", every_s=600)
    system.submit_job("moved", every_s=600)
    system.submit_job("asked", in_s=5 * HOUR_S)
    system.pass_s(400)
    system.pass_s(HOUR_S, ticks=False)
    system.pause_job("paused")
    system.patch_job("moved", every="900s")
    system.trigger_job("asked")  # it needs no tick
    system.pass_s(HOUR_S, ticks=False)
    system.resume_job("paused")
    system.pass_s(HOUR_S, ticks=False)
    system.pass_s(2 * HOUR_S)
    _end(system, "paused", "moved")


@outage("no executor for a day, while users go on", late_s=DAY_S + 700, settle_s=2 * HOUR_S, ticks=2)
def dead_executor_changed(system: System) -> None:
    for job_id in ("paused", "resumed", "moved"):
        system.submit_job(job_id, every_s=HOUR_S)
    system.submit_job("dead", in_s=5, max_attempts=1)
    system.submit_job("later", in_s=2 * DAY_S)
    system.handler = lambda call: failure() if call.job_id == "dead" and call.attempt == 1 else SUCCEED
    system.pass_s(60)
    system.pass_s(DAY_S / 4, deliveries=False)
    for job_id in ("paused", "resumed"):
        system.pause_job(job_id)
    system.patch_job("moved", every="2h")
    system.redrive_job("dead")
    system.trigger_job("later")
    system.pass_s(DAY_S / 4, deliveries=False)
    system.resume_job("resumed")
    system.pass_s(DAY_S / 2, deliveries=False)
    system.pass_s(2 * HOUR_S)
    _end(system, "paused", "resumed", "moved", "later")


@outage("the table is throttled for 10 minutes, and a user tries again", late_s=1500, settle_s=3000, lost_attempts=3)
def throttled_user(system: System) -> None:
    system.submit_job("dense", every_s=30)
    system.submit_job("dead", in_s=5, max_attempts=1)
    system.submit_job("far", in_s=3000)
    system.handler = lambda call: failure() if call.job_id == "dead" and call.attempt == 1 else SUCCEED
    system.pass_s(100)
    for throttled_now in (True, False):
        _counting(system).is_throttled = throttled_now
        for say in (system.pause_job, system.resume_job):
            say("dense")
            system.pass_s(300 if throttled_now else 20)
        system.trigger_job("far")
        system.redrive_job("dead")
        system.patch_job("dense", every="40s")
    system.pass_s(1000)
    _end(system, "dense", "far")


@outage("the table is throttled for 10 minutes", late_s=1500, settle_s=3000, lost_attempts=3)
def throttled_table(system: System) -> None:
    _jobs(system, 500, 1500)
    system.submit_job("dense", every_s=30)
    system.pass_s(100)
    _counting(system).is_throttled = True
    system.pass_s(600)
    _counting(system).is_throttled = False
    system.pass_s(2000)
    _end(system, "often", "dense")


@outage("a lost page and a lost message", late_s=HOUR_S + 16 * 60, settle_s=3 * HOUR_S, audited=True)
def lost_page(system: System) -> None:
    """What was claimed has neither a page nor a message: nothing but the audit repairs it."""
    system.submit_job("once", in_s=400)
    system.crash_before("tick: SendMessageBatch")
    system.pass_s(200)
    for item in system.table.all():
        if item["sk"]["S"].startswith("claim#"):
            system.table.set((item["pk"]["S"], item["sk"]["S"]), None)


@outage("a job that no tick can see", late_s=HOUR_S + 60, settle_s=3 * HOUR_S, audited=True, ticks=90)
def unseen(system: System) -> None:
    """Its index entry lies where no tick looks any more."""
    system.submit_job("once", in_s=400)
    key = ("job#once", "job")
    item = system.table.get(key)
    assert item is not None
    system.table.set(key, {**item, "due_key": {"S": "2026-11-30T01:00#0"}})
