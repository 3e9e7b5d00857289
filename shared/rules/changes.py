"""What a user's word makes of a job: cancelled, paused, resumed, changed. It never writes, and never claims.

A change of *when* gives the job a new revision, which voids what was claimed under the old one. Its schedule then
counts from `changed_at`: the moment of the change, or of the pause that a resume ends.

    claimed, begun or over    claimed, not begun       claimed for later     not claimed
    ───────────────────────────────────────────── changed_at ──────────────────────────────────▶ time
    goes on                   recorded as skipped      void, comes again     comes
"""

from dataclasses import replace
from datetime import datetime, timedelta

from shared.model.job import Job, JobSpec, JobStatus
from shared.rules.plan import Occurrence, span
from shared.rules.slots import first_slot, latest_slot, slots

MOST_AHEAD = 100_000  # occurrences that one pause can void: far more than a claim takes
RESCHEDULED = "rescheduled"
_INSTANT = timedelta(microseconds=1)


def cancelled(job: Job, now: datetime) -> Job:
    """Nothing more is due, ever."""
    return replace(_changed(job), status=JobStatus.CANCELLED, due_at=None, changed_at=_since(job, now))


def paused(job: Job, now: datetime) -> Job:
    """Nothing is due until it is resumed; what was claimed for a time after `now` is void.

    What was due before `now` and not claimed is not lost: it is left to the resume, as if the pause had begun before.
    """
    since = _since(job, now)
    if job.due_at is not None:
        since = min(since, job.due_at - _INSTANT)
    return replace(_changed(job), status=JobStatus.PAUSED, changed_at=since)


def resumed(job: Job) -> Job:
    """Due again, from the pause on: a claim then decides by `catch_up` what becomes of the time in between.

    What the pause made void does not count as claimed any more (`max_runs` stays exact).
    """
    schedule, since = job.spec.schedule, job.changed_at
    again = replace(_changed(job), status=JobStatus.SCHEDULED)
    if schedule.is_one_off:
        return replace(again, due_at=schedule.run_at, runs_claimed=0, claimed_until=None)
    if job.claimed_until is not None and job.claimed_until > since:
        void = len(slots(schedule, job.job_id, since, job.claimed_until, MOST_AHEAD))
        again = replace(again, runs_claimed=max(0, job.runs_claimed - void), claimed_until=None)
    if schedule.max_runs is not None and again.runs_claimed >= schedule.max_runs:
        return replace(again, due_at=None)
    return replace(again, due_at=first_slot(schedule, job.job_id, since))


def with_spec(job: Job, spec: JobSpec, now: datetime, payload_id: str | None) -> Job:
    """The job with `spec`; a new schedule counts from `now`, with its `max_runs` from the beginning."""
    if not is_change_of_when(job, spec):
        return replace(job, spec=spec, version=job.version + 1, payload_id=payload_id)
    since = _since(job, now)
    due_at = first_slot(spec.schedule, job.job_id, since)
    changed = replace(_changed(job), spec=spec, payload_id=payload_id, changed_at=since)
    return replace(changed, due_at=due_at, runs_claimed=0, claimed_until=None)


def dropped(job: Job, spec: JobSpec, now: datetime) -> Occurrence | None:
    """What `spec` takes away at `now` although it was due and no tick had claimed it: a span, to be recorded (I1).

    Without an outage there is none, for ticks claim ahead. What a pause holds back is not due.
    """
    due_at, schedule, now = job.due_at, job.spec.schedule, _since(job, now)
    if due_at is None or due_at > now or job.status is not JobStatus.SCHEDULED:
        return None
    if not is_change_of_when(job, spec) or spec.schedule.run_at == due_at:
        return None
    until = latest_slot(schedule, job.job_id, due_at, now)
    if until is None:
        return Occurrence(scheduled_for=due_at, skip=RESCHEDULED)
    return span(schedule, job.job_id, due_at, until, RESCHEDULED)


def is_change_of_when(job: Job, spec: JobSpec) -> bool:
    """Whether `spec` brings other times. How a missed one is made up for (`catch_up`) is a policy."""
    return replace(spec.schedule, catch_up=job.spec.schedule.catch_up) != job.spec.schedule


def _since(job: Job, now: datetime) -> datetime:
    """From when on a change counts that began at `now`: never before the change that it is made on."""
    #   pause:    12:00:59 begins ────────────────────────────────────────────── writes
    #   update:                    12:01:01 takes 12:01 away: void, and due by then: it must not count as yet to come
    return max(now, job.changed_at)


def _changed(job: Job) -> Job:
    return replace(job, revision=job.revision + 1, version=job.version + 1)
