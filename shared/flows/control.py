"""What a user says about a job after submit: cancel. It never calls a target and never deletes history."""

from dataclasses import dataclass, replace
from datetime import datetime

from shared.flows.inspect import InspectFlow, JobView, is_finished, view
from shared.model.errors import ConflictError, JobNotFoundError
from shared.model.job import Job, JobStatus
from shared.model.run import Run, RunStatus
from shared.store.jobs import JobChangedError, Jobs
from shared.store.runs import Runs

TRIES = 5
OPEN_RUN_PAGES = 10  # of 1 MB: far more runs than can be open at once


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Changes of a job by its user."""

    jobs: Jobs
    runs: Runs
    inspect: InspectFlow

    def cancel(self, job_id: str, now: datetime) -> JobView:
        """No handler is called for the job after this has answered (I5); `running` names the runs still going on.

        Twice gives the same answer. Raises JobNotFoundError; ConflictError when the job is over already.
        """
        job = self._cancelled(job_id, now)
        # Only after the job is written are its runs read: an executor writes its run first and then reads the job,
        # so one of the two always sees the other.
        running = self._mark_open_runs(job, now)
        shown = view(job, self.inspect.latest_runs(job), now)
        return replace(shown, running=tuple(running))

    def _cancelled(self, job_id: str, now: datetime) -> Job:
        for _ in range(TRIES):
            job = self.jobs.get(job_id)
            if job is None:
                raise JobNotFoundError(f"there is no job {job_id!r}")
            if job.status is JobStatus.CANCELLED:
                return job
            if is_finished(job, self.inspect.latest_runs(job)):
                raise ConflictError(f"job {job_id!r} is over: nothing is left to cancel")
            try:
                return self.jobs.cancel(job, now)
            except JobChangedError:
                continue
        raise ConflictError(f"job {job_id!r} keeps being changed by others; try again")

    def _mark_open_runs(self, job: Job, now: datetime) -> list[Run]:
        found = self.runs.open(job.job_id, OPEN_RUN_PAGES)
        return [run for run in found if self.runs.request_cancel(run, job.revision, now) is RunStatus.RUNNING]
