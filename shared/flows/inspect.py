"""What the API shows of jobs and runs. It never writes."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.model.errors import JobNotFoundError
from shared.model.instants import to_text
from shared.model.job import Job, JobStatus
from shared.model.run import Run, RunStatus
from shared.rules.lifecycle import is_over
from shared.rules.slots import next_slot, slots
from shared.store.jobs import Jobs
from shared.store.overlaps import Overlaps
from shared.store.runs import Runs
from shared.store.shards import Shards

SHOWN_RUNS = 20
CHECKED_SLOTS = 200
TICK_OVERDUE = timedelta(minutes=3)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as it is shown: `status` of a one-off is its run's once it is claimed; `next_run_at` is the next to start.

    `runs`: the latest 20, newest first. `running`: after a cancel, the runs that were still going on.
    `overlap_skipped`: how many runs were skipped because another was not over.
    """

    job: Job
    status: str
    next_run_at: datetime | None
    runs: tuple[Run, ...]
    running: tuple[Run, ...] = ()
    overlap_skipped: int = 0


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, newest first; others were scheduled before `before` (None: those were all)."""

    runs: tuple[Run, ...]
    before: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardHealth:
    """When a shard's latest tick that came to its end began; None if there was none yet."""

    shard: int
    last_tick_at: datetime | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`ok`: every shard was ticked within the last three minutes."""

    ok: bool
    shards: tuple[ShardHealth, ...]


@dataclass(frozen=True, slots=True)
class InspectFlow:
    """Reads, all consistent."""

    job_store: Jobs
    run_store: Runs
    shards: Shards
    overlaps: Overlaps

    def job(self, job_id: str, now: datetime) -> JobView:
        """The job and its latest runs. Raises JobNotFoundError."""
        job = self.job_store.get(job_id)
        if job is None:
            raise JobNotFoundError(f"there is no job {job_id!r}")
        return self.view(job, now)

    def view(self, job: Job, now: datetime) -> JobView:
        """A job that was just read or written, with its latest runs."""
        shown = view(job, self.latest_runs(job), now)
        if job.spec.overlap == "allow":
            return shown
        return replace(shown, overlap_skipped=self.overlaps.get(job).skipped)

    def latest_runs(self, job: Job) -> tuple[Run, ...]:
        """See `latest_runs`."""
        return latest_runs(self.run_store, job)

    def runs(self, job_id: str, before: datetime | None, limit: int) -> RunPage:
        """History, newest first: `limit` runs, with `before` those scheduled before it. Raises JobNotFoundError."""
        if self.job_store.get(job_id) is None:
            raise JobNotFoundError(f"there is no job {job_id!r}")
        found = self.run_store.newest(job_id, limit + 1, before)
        shown = tuple(found[:limit])
        return RunPage(shown, shown[-1].scheduled_for if len(found) > limit else None)

    def run(self, job_id: str, scheduled_for: datetime) -> Run:
        """One run. Raises JobNotFoundError."""
        run = self.run_store.get(job_id, scheduled_for)
        if run is None:
            raise JobNotFoundError(f"job {job_id!r} has no run of {to_text(scheduled_for)}")
        return run

    def health(self, now: datetime) -> Health:
        """Whether the shards are ticked."""
        leases = {lease.shard: lease for lease in self.shards.get_many(self.job_store.shards)}
        found = []
        for shard in range(self.job_store.shards):
            lease = leases.get(shard)
            ticked_at = lease.ticked_at if lease else None
            found.append(ShardHealth(shard=shard, last_tick_at=ticked_at, epoch=lease.epoch if lease else 0))
        fresh = [one.last_tick_at is not None and now - one.last_tick_at <= TICK_OVERDUE for one in found]
        return Health(ok=all(fresh), shards=tuple(found))


def latest_runs(run_store: Runs, job: Job) -> tuple[Run, ...]:
    """The latest runs, newest first. The last of the schedule is among them once all are claimed, however many there
    are that a user asked for since, or that an earlier job of the id left.
    """
    found = run_store.newest(job.job_id, SHOWN_RUNS)
    last = job.spec.schedule.run_at or (job.claimed_until if job.due_at is None else None)
    if last is not None and len(found) == SHOWN_RUNS and found[-1].scheduled_for > last:
        before = run_store.newest(job.job_id, 1, before=last + _INSTANT)
        own = [run for run in before if (run.missed_until or run.scheduled_for) >= last]
        found = [*found[: SHOWN_RUNS - len(own)], *own]
    return tuple(found)


def view(job: Job, runs: tuple[Run, ...], now: datetime) -> JobView:
    """A job as it is shown, from its item and its latest runs."""
    return JobView(job=job, status=shown_status(job, runs), next_run_at=shown_next(job, runs, now), runs=runs)


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
