"""What a user says about a job after submit: cancel, pause, resume, change. It never calls a target."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from shared.flows.changing import Changer
from shared.flows.families import Waker
from shared.flows.inspect import InspectFlow, JobView
from shared.flows.shown import is_finished
from shared.model.errors import ConflictError, PreconditionError
from shared.model.instants import to_text
from shared.model.job import Job, JobSpec, JobStatus
from shared.model.run import Run, RunStatus
from shared.queue import SendError
from shared.rules import changes
from shared.rules.changes import RESCHEDULED
from shared.rules.lifecycle import is_over
from shared.store.codec import PAYLOAD_INLINE_BYTES
from shared.store.run_history import RunHistory
from shared.store.run_requests import RunRequests
from shared.store.runs import Runs

CANCELLED = "cancelled"
OPEN_RUN_PAGES = 10  # of 1 MB: far more runs than can be open at once


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Changes of a job by its user."""

    changer: Changer
    runs: Runs
    history: RunHistory
    requests: RunRequests
    inspect: InspectFlow
    waker: Waker
    token: Callable[[], str]  # a new name at each call, for payloads

    def cancel(self, job_id: str, now: datetime) -> JobView:
        """No handler is called for the job after this has answered (I5); `running` names the runs still going on.

        Twice gives the same answer. Raises JobNotFoundError; ConflictError when the job is over already.
        """

        def decide(job: Job) -> Job | None:
            if job.status is JobStatus.CANCELLED:
                return None
            self._refuse_if_over(job, "cancel")
            return changes.cancelled(job, now)

        job = self.changer.run(job_id, decide, now)
        # Only after the job is written are its runs read: an executor writes its run first and then reads the job,
        # so one of the two always sees the other.
        running = tuple(self._mark_open_runs(job, now))
        if job.has_children:
            with suppress(SendError, ClientError, BotoCoreError):  # who is not woken looks by itself before long
                self.waker.wake(job_id, now)
        return replace(self._view(job, now), running=running)

    def pause(self, job_id: str, now: datetime) -> JobView:
        """No run of the schedule starts until it is resumed; those that are going on go on to their end.

        Twice gives the same answer. Raises JobNotFoundError; ConflictError when the job is cancelled or over.
        """

        def decide(job: Job) -> Job | None:
            if job.status is JobStatus.PAUSED:
                return None
            self._refuse_if_over(job, "pause")
            return changes.paused(job, now)

        return self._view(self.changer.run(job_id, decide, now), now)

    def resume(self, job_id: str, now: datetime) -> JobView:
        """The schedule goes on; what it missed meanwhile is made up for by the job's `catch_up`.

        A job that is not paused stays as it is. Raises JobNotFoundError; ConflictError when the job is cancelled or
        over.
        """

        def decide(job: Job) -> Job | None:
            self._refuse_if_over(job, "resume")
            return changes.resumed(job) if job.status is JobStatus.PAUSED else None

        return self._view(self.changer.run(job_id, decide, now), now)

    def update(
        self, job_id: str, change: Callable[[JobSpec], JobSpec], versions: frozenset[int] | None, now: datetime
    ) -> JobView:
        """Give the job the specification that `change` makes of its own, if it is at one of `versions` (None: any).

        A new schedule counts from `now` and voids what was claimed before; all else holds from the next run that
        starts. Raises JobNotFoundError, PreconditionError, ConflictError, and what `change` raises.
        """
        written: list[int] = []  # the versions that this call may have made: its own are no reason to refuse
        before: list[Job] = []

        def decide(job: Job) -> Job | None:
            before.append(job)
            if versions is not None and job.version not in versions and job.version not in written:
                raise PreconditionError(f"job {job_id!r} is at version {job.version}")
            self._refuse_if_over(job, "change")
            spec = change(job.spec)
            if spec == job.spec:
                return None
            self._refuse_if_run(job, spec)
            written.append(job.version + 1)
            return changes.with_spec(job, spec, now, self._payload_id(job, spec))

        job = self.changer.run(job_id, decide, now)
        self._end_waiting(before[-1], job, now)
        return self._view(job, now)

    def _end_waiting(self, before: Job, job: Job, now: datetime) -> None:
        """End the run of a paused one-off that has another time now: nothing but a resume would have brought it."""
        run_at = before.spec.schedule.run_at
        if before.status is not JobStatus.PAUSED or run_at is None or run_at == job.spec.schedule.run_at:
            return
        run = self.runs.get(job.job_id, run_at)
        if run is not None and run.requested_at is None and run.status in (RunStatus.FAILED, RunStatus.ENQUEUED):
            self.requests.cancel(run, job.revision, RESCHEDULED, now)

    def _payload_id(self, job: Job, spec: JobSpec) -> str | None:
        if spec.payload == job.spec.payload:
            return job.payload_id
        return self.token() if len(spec.payload.encode()) > PAYLOAD_INLINE_BYTES else None

    def _refuse_if_over(self, job: Job, verb: str) -> None:
        if job.status is JobStatus.CANCELLED:
            raise ConflictError(f"job {job.job_id!r} is cancelled: nothing is left to {verb}")
        if is_finished(job, self.inspect.latest_runs(job)):
            raise ConflictError(f"job {job.job_id!r} is over: nothing is left to {verb}")

    def _refuse_if_run(self, job: Job, spec: JobSpec) -> None:
        """A run is named by its time: one that is over cannot come again by giving the job its time anew."""
        run_at = spec.schedule.run_at
        if run_at is None or run_at == job.spec.schedule.run_at:
            return
        run = self.runs.get(job.job_id, run_at)
        if run is not None and is_over(run.status):
            raise ConflictError(f"job {job.job_id!r} has run for {to_text(run_at)} already; choose another time")

    def _view(self, job: Job, now: datetime) -> JobView:
        return self.inspect.view(job, now)

    def _mark_open_runs(self, job: Job, now: datetime) -> list[Run]:
        found = self.history.open(job.job_id, OPEN_RUN_PAGES)
        marked = [(run, self.requests.cancel(run, job.revision, CANCELLED, now)) for run in found]
        return [run for run, was in marked if was is RunStatus.RUNNING]
