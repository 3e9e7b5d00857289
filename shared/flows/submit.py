"""Submit: a checked job into the store, and into the queue if it is due within the horizon. It never runs a job."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from shared.flows.changing import Changer
from shared.flows.claims import claimed_at_once, over_at
from shared.flows.dependencies import Parents
from shared.flows.enqueue import Enqueuer
from shared.flows.families import Families
from shared.flows.inspect import JobView, view
from shared.flows.shown import is_finished, latest_runs
from shared.model.errors import ConflictError, InputError, InvalidScheduleError, JobNotFoundError
from shared.model.instants import to_text
from shared.model.job import Job, JobSpec, JobStatus
from shared.model.message import Message
from shared.model.run import RunStatus
from shared.rules.changes import cancelled
from shared.rules.sharding import shard_of
from shared.rules.slots import first_slot
from shared.store.codec import PAYLOAD_INLINE_BYTES
from shared.store.jobs import JobChangedError, JobExistsError, Jobs
from shared.store.run_history import RunHistory
from shared.store.runs import Runs

PAGES = 10  # of 1 MB of a job's history: far more runs than can go on at once


@dataclass(frozen=True, slots=True)
class SubmitFlow:
    """Takes new jobs. A job due within the horizon waits for no tick."""

    jobs: Jobs
    runs: Runs
    history: RunHistory
    enqueuer: Enqueuer
    changer: Changer
    parents: Parents
    families: Families
    token: Callable[[], str]  # a new name at each call, for payloads

    def submit(self, spec: JobSpec, now: datetime) -> JobView:
        """Store `spec` under its job_id (which it must have by now), and enqueue what is due within the horizon.

        Raises InvalidScheduleError; InputError for parents that it cannot have; ConflictError when a job of this id is
        there and not over.
        """
        if spec.job_id is None:
            raise InputError("job_id", "a job needs one before it is stored")
        job = new_job(spec, spec.job_id, now, self.token())
        if spec.depends_on:
            self.families.link([(job, self.parents.check(spec.job_id, spec, now))], now)
        try:
            return self._store(job, None, now)
        except JobExistsError as exists:
            return self.again(job, exists.job, now)

    def again(self, job: Job, there: Job, now: datetime) -> JobView:
        """A job of this id is there: the new one takes its place if it is over, and its revision voids old messages.

        Raises ConflictError.
        """
        over = there.status is JobStatus.CANCELLED or is_finished(there, latest_runs(self.history, there))
        if not over:
            raise ConflictError(
                f"job {job.job_id!r} exists and is {there.status}; cancel it first, or choose another id"
            )
        if job.due_at is not None and self.runs.get(job.job_id, job.due_at) is not None:
            raise ConflictError(
                f"job {job.job_id!r} has run for {to_text(job.due_at)} already; choose another time or id"
            )
        revision = there.revision + 1
        later = replace(job, revision=revision, first_revision=revision, version=there.version + 1)
        later = replace(later, has_children=later.has_children or there.has_children)
        try:
            stored = self._store(later, there, now)
        except (JobExistsError, JobChangedError):
            raise ConflictError(f"job {job.job_id!r} was submitted by somebody else at this moment") from None
        if self._began_before(later) or (there.status is not JobStatus.CANCELLED and self._goes_on(later)):
            self._take_back(later, now)
            raise ConflictError(f"a run of job {job.job_id!r} as it was before is just ending; try again")
        if later.spec.depends_on and self.parents.waits_for_itself(later):
            #   submit a: b is over ────────── write a (on b) ── look again      both were over, and each is submitted
            #   submit b:         a is over ── write b (on a) ── look again      anew: at least one sees the other
            self._take_back(later, now)
            raise ConflictError(f"job {job.job_id!r} has just come to wait for itself: a parent was submitted anew")
        return stored

    def _began_before(self, job: Job) -> bool:
        """Whether a run of the old job has taken the new one's first occurrence."""
        #   submit:   no run there? ────────────────────── write ── look again     an executor that reads the job after
        #   execute:                 start ── read job (old)                       the write leaves it to the new one
        run = self.runs.get(job.job_id, job.due_at) if job.due_at else None
        return run is not None and run.revision < job.revision

    def _goes_on(self, job: Job) -> bool:
        """Whether a run of the old job is not over, after all: it was asked for anew."""
        #   submit:   all over? ───────────────────────────────────────── write ── look again    one that begins after
        #   redrive:             the job is there ── run ── start ── read job (old) ── call      the write is void
        return any(
            run.status is RunStatus.RUNNING and run.revision < job.revision
            for run in self.history.open(job.job_id, PAGES)
        )

    def _take_back(self, job: Job, now: datetime) -> None:
        def decide(there: Job) -> Job | None:
            mine = there.revision == job.revision and there.status is JobStatus.SCHEDULED
            return cancelled(there, now) if mine else None  # somebody else has cancelled it

        with suppress(JobNotFoundError):
            self.changer.run(job.job_id, decide, now)

    def _store(self, job: Job, instead_of: Job | None, now: datetime) -> JobView:
        claimed, messages = claimed_at_once(job, now, self.changer.horizon_s)
        ttl = over_at(claimed, now, self.jobs.retention)

        def write() -> tuple[Message, ...]:
            self._put(claimed, instead_of, ttl)
            return messages

        if messages:
            self.enqueuer.run(shard_of(job.job_id, self.jobs.shards), messages, write)
        else:
            write()
        return view(claimed, (), now)

    def _put(self, job: Job, instead_of: Job | None, ttl: datetime | None) -> None:
        if instead_of is None:
            self.jobs.create(job, ttl)
        else:
            self.jobs.replace_finished(job, instead_of, ttl)


def new_job(spec: JobSpec, job_id: str, now: datetime, payload_id: str) -> Job:
    """The job that `spec` becomes when it is submitted now; `payload_id` names its payload if that is a long one.

    Raises InvalidScheduleError.
    """
    due_at = first_slot(spec.schedule, job_id, now)
    if due_at is None:
        raise InvalidScheduleError("cron" if spec.schedule.cron else "every", "this schedule never fires")
    return Job(
        job_id=job_id,
        spec=spec,
        status=JobStatus.SCHEDULED,
        due_at=due_at,
        revision=1,
        version=1,
        fence=0,
        created_at=now,
        changed_at=now,
        payload_id=payload_id if len(spec.payload.encode()) > PAYLOAD_INLINE_BYTES else None,
    )
