"""How a job stands, and when it is due next, by its item and its latest runs. It never writes."""

from datetime import datetime, timedelta

from shared.model.job import Job, JobStatus
from shared.model.run import Run, RunStatus
from shared.rules.lifecycle import is_over
from shared.rules.slots import next_slot, slots
from shared.store.run_history import RunHistory

LATEST_RUNS = 20
CHECKED_SLOTS = 200
_INSTANT = timedelta(microseconds=1)


def latest_runs(history: RunHistory, job: Job) -> tuple[Run, ...]:
    """The latest runs, newest first. The last of the schedule is among them once all are claimed, however many there
    are that a user asked for since, or that an earlier job of the id left.
    """
    found = history.newest(job.job_id, LATEST_RUNS)
    last = job.spec.schedule.run_at or (job.claimed_until if job.due_at is None else None)
    if last is not None and len(found) == LATEST_RUNS and found[-1].scheduled_for > last:
        before = history.newest(job.job_id, 1, before=last + _INSTANT)
        own = [run for run in before if (run.missed_until or run.scheduled_for) >= last]
        found = [*found[: LATEST_RUNS - len(own)], *own]
    return tuple(found)


def shown_status(job: Job, runs: tuple[Run, ...]) -> str:
    """The job's own status; of a claimed one-off its run's; `completed` when nothing more will come."""
    run = _own_run(job, runs)
    if job.status is JobStatus.CANCELLED:
        # A run that was going on when the cancel came goes on to its end, and shows it.
        waits = (RunStatus.ENQUEUED, RunStatus.FAILED)
        return run.status if run and run.status not in (*waits, RunStatus.SKIPPED) else job.status
    if job.status is JobStatus.PAUSED and run is not None and is_over(run.status):
        return run.status  # it was going on when the pause came
    if job.status is not JobStatus.SCHEDULED or job.due_at is not None:
        return job.status
    if job.spec.schedule.is_one_off:
        return run.status if run else RunStatus.ENQUEUED
    return JobStatus.COMPLETED if is_finished(job, runs) else JobStatus.SCHEDULED


def is_finished(job: Job, runs: tuple[Run, ...]) -> bool:
    """Whether a job that is not cancelled will never start another attempt, as far as its latest runs show."""
    if job.status is JobStatus.CANCELLED or any(not is_over(run.status) for run in runs):
        return False
    if job.spec.schedule.is_one_off and (job.status is JobStatus.PAUSED or job.due_at is None):
        return _own_run(job, runs) is not None
    if job.status is JobStatus.PAUSED or job.due_at is not None:
        return False
    return job.claimed_until is not None and _are_recorded(job, runs, job.claimed_until)


def _are_recorded(job: Job, runs: tuple[Run, ...], until: datetime) -> bool:
    """Whether the last claimed occurrence has its run, and each that is due between that and the oldest of `runs`."""
    spans = [(run.scheduled_for, run.missed_until or run.scheduled_for) for run in runs]
    if until not in {last for _, last in spans}:
        return False
    since = max(job.changed_at, spans[-1][0])
    due = slots(job.spec.schedule, job.job_id, since, until, CHECKED_SLOTS)
    return all(any(first <= slot <= last for first, last in spans) for slot in due)


def _own_run(job: Job, runs: tuple[Run, ...]) -> Run | None:
    """The one run of a one-off, and not one that an earlier job of the same id left."""
    run_at = job.spec.schedule.run_at
    return next((run for run in runs if run.scheduled_for == run_at), None) if run_at else None


def shown_next(job: Job, runs: tuple[Run, ...], now: datetime) -> datetime | None:
    """The next occurrence to start. Claims run minutes ahead, so it may lie before the job's own due time."""
    if job.status is not JobStatus.SCHEDULED:
        return None
    schedule = job.spec.schedule
    if schedule.is_one_off:
        return schedule.run_at if _own_run(job, runs) is None else None
    if job.claimed_until is not None and job.claimed_until > now:
        ahead = next_slot(schedule, job.job_id, max(now, job.changed_at))
        if ahead is not None and ahead <= job.claimed_until:
            return ahead
    return job.due_at
