"""What one claim of a job takes: the occurrences to send, and when the job is due next. It never claims or sends."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.model.errors import DuetimeError
from shared.model.job import Due, Schedule
from shared.rules.slots import count_slots, latest_slot, next_slot, slots

MAX_OCCURRENCES = 1000  # of one claim; what is due beyond them is claimed next
MISSED_AFTER_S = 60  # later than this when it is claimed, an occurrence of a recurring job counts as missed
TICKS_APART_S = 120  # the longest from one minute's tick to the next one's: with a short horizon, no outage
COUNT_LIMIT = 100_000  # a longer missed span is given as this many
CATCH_UP = "catch_up"

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One due moment to send; with `skip` it is recorded for that reason and not run.

    A skipped one may stand for a span: `missed` occurrences from `scheduled_for` to `missed_until`.
    """

    scheduled_for: datetime
    skip: str | None = None
    missed: int | None = None
    missed_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome: what to send, the next due time (None: no more), and the job's new count of runs."""

    occurrences: tuple[Occurrence, ...]
    next_due_at: datetime | None
    runs_claimed: int

    @property
    def claimed_until(self) -> datetime:
        """The last occurrence that this plan covers."""
        last = self.occurrences[-1]
        return last.missed_until or last.scheduled_for


def plan(job: Due, now: datetime, horizon_s: int) -> Plan:
    """Claim what is due up to `now + horizon_s`, beginning with `job.due_at` (which is claimed in any case)."""
    if job.schedule.is_one_off:
        return Plan(
            occurrences=(Occurrence(scheduled_for=job.due_at),), next_due_at=None, runs_claimed=job.runs_claimed + 1
        )
    left = MAX_OCCURRENCES
    if job.schedule.max_runs is not None:
        left = min(left, job.schedule.max_runs - job.runs_claimed)
    missed, runs = _missed(job, now, horizon_s)
    until = now + timedelta(seconds=horizon_s)
    after = runs[-1] if runs else missed[-1].missed_until if missed else None
    if after is None:
        runs, after = [job.due_at], job.due_at
    runs += slots(job.schedule, job.job_id, after, until, left - len(runs)) if left > len(runs) else []
    taken = missed + tuple(Occurrence(scheduled_for=slot) for slot in runs)
    count = job.runs_claimed + len(runs)
    last = runs[-1] if runs else after
    return Plan(occurrences=taken, next_due_at=_next(job, last, count), runs_claimed=count)


def is_slot(schedule: Schedule, job_id: str, moment: datetime) -> bool:
    """Whether `moment` is one of the schedule's occurrences."""
    return next_slot(schedule, job_id, moment - _INSTANT) == moment


def span(schedule: Schedule, job_id: str, first: datetime, until: datetime, skip: str) -> Occurrence:
    """The occurrences from `first` to `until`, both of them included, as one that is recorded as skipped."""
    count = 1 + count_slots(schedule, job_id, first, until, COUNT_LIMIT - 1)
    return Occurrence(scheduled_for=first, skip=skip, missed=count, missed_until=until)


def _next(job: Due, last: datetime, runs_claimed: int) -> datetime | None:
    if job.schedule.max_runs is not None and runs_claimed >= job.schedule.max_runs:
        return None
    following = next_slot(job.schedule, job.job_id, last)
    if following is not None and following <= last:
        raise DuetimeError(f"job {job.job_id}: the time after {last} came out as {following}, which is not after it")
    return following


def _missed(job: Due, now: datetime, horizon_s: int) -> tuple[tuple[Occurrence, ...], list[datetime]]:
    """What an outage left behind, by the job's `catch_up`: the span to record as skipped, and the late runs."""
    late_before = now - timedelta(seconds=max(MISSED_AFTER_S, TICKS_APART_S - horizon_s))
    if job.due_at >= late_before or job.schedule.catch_up == "all":
        return (), []
    latest = latest_slot(job.schedule, job.job_id, job.due_at, late_before) or job.due_at
    if job.schedule.catch_up == "skip":
        return (span(job.schedule, job.job_id, job.due_at, latest, CATCH_UP),), []
    if latest == job.due_at:
        return (), [latest]
    before = latest_slot(job.schedule, job.job_id, job.due_at, latest - _INSTANT) or job.due_at
    return (span(job.schedule, job.job_id, job.due_at, before, CATCH_UP),), [latest]
