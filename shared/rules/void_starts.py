"""When a start is void, and whether its occurrence comes again. It never takes the start back (flows.attempt does).

A start is made before its job is read. By then the job may be gone, cancelled, paused, changed, or the start too late.
"""

from datetime import datetime, timedelta

from shared.model.job import Job, JobStatus
from shared.model.message import Message
from shared.model.run import Run
from shared.rules.plan import is_slot

CANCELLED = "cancelled"
EXPIRED = "expired"
PAUSED = "paused"
RESCHEDULED = "rescheduled"


def void_reason(job: Job, run: Run, message: Message) -> str | None:
    """Why the start is void; None if it is not. A run that was asked for stands beside the schedule and its pauses."""
    if job.status is JobStatus.CANCELLED:
        return CANCELLED
    if run.requested_at is not None:
        return CANCELLED if run.revision < job.first_revision else None  # it was asked of an earlier job of this id
    if job.status is JobStatus.PAUSED:
        return PAUSED
    return RESCHEDULED if job.revision != message.revision else None


def may_come_again(job: Job | None, scheduled_for: datetime) -> bool:
    """Whether the job may still bring this occurrence: its schedule counts from the last change of when."""
    if job is None or job.changed_at < scheduled_for:
        return True
    # submitted anew for the very time that the message of the job before it was for, or paused: a resume brings it
    return job.status is not JobStatus.CANCELLED and job.spec.schedule.run_at == scheduled_for


def comes_again(job: Job | None, scheduled_for: datetime) -> bool:
    """Whether the job's present schedule does bring this occurrence, with a message of its own."""
    if job is None or job.status is JobStatus.CANCELLED:
        return False
    if job.status is JobStatus.PAUSED:  # a resume may leave out what it finds missed, but not the run of a one-off
        return job.spec.schedule.run_at == scheduled_for
    return may_come_again(job, scheduled_for) and is_slot(job.spec.schedule, job.job_id, scheduled_for)


def is_expired(job: Job, run: Run, now: datetime) -> bool:
    """Whether a first attempt comes later than the job's `deadline_s` allows."""
    deadline_s = job.spec.deadline_s
    return deadline_s is not None and run.attempt == 1 and now > run.scheduled_for + timedelta(seconds=deadline_s)
