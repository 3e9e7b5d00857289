"""A run that a user asks for: now, beside the schedule, or again after it was dead-lettered. It never calls a target.

Each is journal page → run item → send → settle. The item, which says when it was asked for, is to recovery and audit
what a claim is to the runs of a schedule.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.flows.enqueue import Enqueuer
from shared.flows.shown import is_finished, latest_runs
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.instants import to_text
from shared.model.job import Job, JobStatus
from shared.model.message import Message
from shared.model.run import Run, RunStatus
from shared.rules.lease import first_lease_s
from shared.rules.sharding import shard_of
from shared.store.jobs import Jobs
from shared.store.run_history import RunHistory
from shared.store.run_requests import RunChangedError, RunRequests
from shared.store.runs import Runs

AT_ONCE = 100  # dead-lettered runs that one call redrives
PAGES = 10  # of 1 MB of a job's history that one call reads
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Redriven:
    """What a redrive of a job's dead-lettered runs did; `more`: there are others, for the next call."""

    runs: tuple[datetime, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class AgainFlow:
    """Takes a user's wish for a run."""

    jobs: Jobs
    runs: Runs
    history: RunHistory
    requests: RunRequests
    enqueuer: Enqueuer

    def trigger(self, job_id: str, now: datetime) -> Run:
        """A run now, beside the schedule, also of a paused job: its `scheduled_for` is `now`.

        Raises JobNotFoundError; ConflictError when the job is cancelled or over.
        """
        job = self._job(job_id)
        if is_finished(job, latest_runs(self.history, job)):
            raise ConflictError(f"job {job_id!r} is over: it cannot be triggered")
        # A schedule's times are whole seconds most often: this one must not be taken for one of them.
        moment = now if now.microsecond else now + _INSTANT
        message = _message(job, moment)

        def write() -> list[Message]:
            self.requests.trigger(message, now)
            return [message]

        try:
            self.enqueuer.run(self._shard(job), [message], write)
        except RunChangedError:
            raise ConflictError(f"job {job_id!r} was triggered at this very moment; try again") from None
        return Run(
            job_id=job_id,
            scheduled_for=moment,
            status=RunStatus.ENQUEUED,
            revision=job.revision,
            attempt=0,
            attempts=(),
            requested_at=now,
        )

    def redrive(self, job_id: str, scheduled_for: datetime, now: datetime) -> Run:
        """A dead-lettered run again: all attempts anew, its history kept.

        Raises JobNotFoundError; ConflictError when the run is not dead-lettered, or its job is cancelled, or it is one
        of an earlier job of this id.
        """
        job = self._job(job_id)
        run = self.runs.get(job_id, scheduled_for)
        if run is None:
            raise JobNotFoundError(f"job {job_id!r} has no run of {to_text(scheduled_for)}")
        if run.revision < job.first_revision:
            raise ConflictError(f"run {to_text(scheduled_for)} is one of an earlier job {job_id!r}, which is gone")
        if run.status is RunStatus.DEAD_LETTERED and self._redrive(job, [run], now):
            return self.runs.get(job_id, scheduled_for) or run
        there, name = self.runs.get(job_id, scheduled_for) or run, f"run {to_text(scheduled_for)} of job {job_id!r}"
        if there.status is RunStatus.DEAD_LETTERED:
            raise ConflictError(f"{name} was redriven by somebody else at this very moment")
        raise ConflictError(f"{name} is {there.status}, not dead_lettered")

    def redrive_all(self, job_id: str, now: datetime) -> Redriven:
        """The dead-lettered runs of a job again, the newest first, up to 100 at once.

        Raises JobNotFoundError; ConflictError when the job is cancelled.
        """
        job = self._job(job_id)
        found = self.history.dead_lettered(job_id, AT_ONCE + 1, PAGES, job.first_revision)
        again = self._redrive(job, found[:AT_ONCE], now) if found else []
        return Redriven(tuple(run.scheduled_for for run in again), more=len(found) > AT_ONCE)

    def _redrive(self, job: Job, runs: list[Run], now: datetime) -> list[Run]:
        """Those of `runs` that were still dead-lettered."""
        self.jobs.keep(job.job_id, now + self.jobs.retention)  # a job that is over must not go before its run
        done: list[Run] = []

        def write() -> list[Message]:
            for run in runs:
                try:
                    self.requests.redrive(run, job.revision, now)
                    done.append(run)
                except RunChangedError as changed:
                    if not changed.sure:
                        raise
            return [_message(job, run.scheduled_for) for run in done]

        self.enqueuer.run(self._shard(job), [_message(job, run.scheduled_for) for run in runs], write)
        return done

    def _job(self, job_id: str) -> Job:
        job = self.jobs.get(job_id)
        if job is None:
            raise JobNotFoundError(f"there is no job {job_id!r}")
        if job.status is JobStatus.CANCELLED:
            raise ConflictError(f"job {job_id!r} is cancelled: nothing of it runs any more")
        return job

    def _shard(self, job: Job) -> int:
        return shard_of(job.job_id, self.jobs.shards)


def _message(job: Job, scheduled_for: datetime) -> Message:
    return Message(
        job_id=job.job_id,
        scheduled_for=scheduled_for,
        revision=job.revision,
        fence=0,
        lease_s=first_lease_s(job.spec.timeout_s),
        priority=job.spec.priority,
        group=job.spec.group,
    )
