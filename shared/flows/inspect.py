"""What the API shows of jobs and runs. It never writes."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.flows.shown import latest_runs, shown_next, shown_status
from shared.model.errors import JobNotFoundError
from shared.model.instants import to_text
from shared.model.job import Job
from shared.model.run import Run
from shared.store.jobs import Jobs
from shared.store.overlaps import Overlaps
from shared.store.run_history import RunHistory
from shared.store.runs import Runs
from shared.store.shards import Shards

TICK_OVERDUE = timedelta(minutes=3)


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
    """Reads, all consistent; `ticked_shards` are those that jobs may be in."""

    job_store: Jobs
    run_store: Runs
    history: RunHistory
    shards: Shards
    overlaps: Overlaps
    ticked_shards: int

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
        return latest_runs(self.history, job)

    def runs(self, job_id: str, before: datetime | None, limit: int) -> RunPage:
        """History, newest first: `limit` runs, with `before` those scheduled before it. Raises JobNotFoundError."""
        if self.job_store.get(job_id) is None:
            raise JobNotFoundError(f"there is no job {job_id!r}")
        found = self.history.newest(job_id, limit + 1, before)
        shown = tuple(found[:limit])
        return RunPage(shown, shown[-1].scheduled_for if len(found) > limit else None)

    def run(self, job_id: str, scheduled_for: datetime) -> Run:
        """One run. Raises JobNotFoundError."""
        run = self.run_store.get(job_id, scheduled_for)
        if run is None:
            raise JobNotFoundError(f"job {job_id!r} has no run of {to_text(scheduled_for)}")
        return run

    def health(self, now: datetime) -> Health:
        """Whether the shards are ticked, those that only drain among them."""
        leases = {lease.shard: lease for lease in self.shards.get_many(self.ticked_shards)}
        found = []
        for shard in range(self.ticked_shards):
            lease = leases.get(shard)
            ticked_at = lease.ticked_at if lease else None
            found.append(ShardHealth(shard=shard, last_tick_at=ticked_at, epoch=lease.epoch if lease else 0))
        fresh = [one.last_tick_at is not None and now - one.last_tick_at <= TICK_OVERDUE for one in found]
        return Health(ok=all(fresh), shards=tuple(found))


def view(job: Job, runs: tuple[Run, ...], now: datetime) -> JobView:
    """A job as it is shown, from its item and its latest runs."""
    return JobView(job=job, status=shown_status(job, runs), next_run_at=shown_next(job, runs, now), runs=runs)
