"""What a user's word makes of a job: cancelled, paused, resumed, changed. It never writes, and never claims.

A change of *when* gives the job a new revision, which voids what was claimed under the old one. Its schedule then
counts from `changed_at`: the moment of the change, or of the pause that a resume ends.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from shared.model.job import Job, JobSpec, JobStatus
from shared.rules.schedules import first_slot, slots

MOST_AHEAD = 100_000  # occurrences that one pause can void: far more than a claim takes
_INSTANT = timedelta(microseconds=1)


def cancelled(job: Job, now: datetime) -> Job:
    """Nothing more is due, ever."""
    return replace(_changed(job), status=JobStatus.CANCELLED, due_at=None, changed_at=now)


def paused(job: Job, now: datetime) -> Job:
    """Nothing is due until it is resumed; what was claimed for a time after `now` is void."""
    return replace(_changed(job), status=JobStatus.PAUSED, changed_at=now)


def resumed(job: Job) -> Job:
    """Due again, from the pause on: a claim then decides by `catch_up` what becomes of the time in between.

    What the pause made void does not count as claimed any more (`max_runs` stays exact). What was due before the pause
    and that no tick had claimed by then is due still, and the schedule counts from there.
    """
    schedule, since = job.spec.schedule, job.changed_at
    again = replace(_changed(job), status=JobStatus.SCHEDULED)
    if schedule.is_one_off:
        return replace(again, due_at=schedule.run_at, runs_claimed=0, claimed_until=None)
    if job.due_at is not None and job.due_at <= since:
        since = job.due_at - _INSTANT
        again = replace(again, changed_at=since)
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
    due_at = first_slot(spec.schedule, job.job_id, now)
    changed = replace(_changed(job), spec=spec, payload_id=payload_id, changed_at=now)
    return replace(changed, due_at=due_at, runs_claimed=0, claimed_until=None)


def is_change_of_when(job: Job, spec: JobSpec) -> bool:
    """Whether `spec` brings other times. How a missed one is made up for (`catch_up`) is a policy."""
    return replace(spec.schedule, catch_up=job.spec.schedule.catch_up) != job.spec.schedule


def _changed(job: Job) -> Job:
    return replace(job, revision=job.revision + 1, version=job.version + 1)
