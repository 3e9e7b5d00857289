"""When something in the store has been left behind: what the audit looks for. It never repairs (flows.audit does)."""

from datetime import datetime, timedelta

from shared.model.job import Job, JobStatus
from shared.model.run import Run, RunStatus
from shared.rules.slots import slots

OVERDUE_AFTER = timedelta(minutes=3)  # two ticks and a moment: nothing due stays in the index longer
STALE_AFTER = timedelta(minutes=15)  # a message that is there at all has been received by then
LOOK_BACK = timedelta(hours=3)  # how far back the occurrences of a recurring job are checked; the audit runs hourly
MAX_SLOTS = 20_000  # a job every second has 10,800 in that span


def is_overdue(job: Job, now: datetime) -> bool:
    """Due for more than two ticks, and not claimed."""
    return job.status is JobStatus.SCHEDULED and job.due_at is not None and job.due_at < now - OVERDUE_AFTER


def claimed_long_ago(job: Job, now: datetime) -> list[datetime]:
    """The claimed occurrences that must have a run by now: a one-off's at any age, others for three hours."""
    if job.status is not JobStatus.SCHEDULED or job.claimed_until is None:
        return []
    run_at = job.spec.schedule.run_at
    if run_at is not None:
        return [run_at] if job.due_at is None and max(run_at, job.changed_at) < now - STALE_AFTER else []
    until = min(job.claimed_until, now - STALE_AFTER)
    after = max(job.changed_at, now - LOOK_BACK)
    return slots(job.spec.schedule, job.job_id, after, until, MAX_SLOTS) if after < until else []


def is_abandoned(run: Run, now: datetime) -> bool:
    """Its lease is long over, or its retry long due, and nobody has taken it up."""
    if run.status is RunStatus.RUNNING:
        return run.lease_expires_at is not None and run.lease_expires_at < now - STALE_AFTER
    waits = run.status in (RunStatus.FAILED, RunStatus.ENQUEUED)
    return waits and run.retry_at is not None and run.retry_at < now - STALE_AFTER
