"""shared/rules/changes.py, and shared/flows/changing.py call by call; when a job is over (shared/flows/shown.py)."""

from typing import Any

from tests.model.flows_claims import ClaimFlows, Flow
from tests.model.store_jobs import WRITTEN
from tests.model.world import (
    CANCELLED,
    OVER,
    PAUSED,
    SCHEDULED,
    Job,
    Message,
    Run,
    Spec,
)

REFUSED = "409"


class ChangeFlows(ClaimFlows):
    """How a user's word becomes a job's next version. `now` is the moment at which the call came."""

    # --- shared/rules/changes.py

    def cancelled(self, job: Job, now: int) -> Job:
        return changed(job)._replace(status=CANCELLED, due=None, changed=self.moment(job, now))

    def paused(self, job: Job, now: int) -> Job:
        since = self.moment(job, now)
        return changed(job)._replace(status=PAUSED, changed=since if job.due is None else min(since, job.due))

    def resumed(self, job: Job) -> Job:
        since = job.changed
        again = changed(job)._replace(status=SCHEDULED)
        if job.spec.one_off:
            return again._replace(due=job.spec.run_at, count=0, claimed=None)
        if job.claimed is not None and job.claimed >= since:
            void = sum(since <= slot <= job.claimed for slot in job.slots)
            again = again._replace(count=max(0, job.count - void), claimed=None)
        if job.spec.max_runs is not None and again.count >= job.spec.max_runs:
            return again._replace(due=None)
        return again._replace(due=first_slot(job.spec, since))

    def with_spec(self, job: Job, spec: Spec, now: int) -> Job:
        if not is_change_of_when(job.spec, spec):
            return job._replace(spec=spec, version=job.version + 1)
        since = self.moment(job, now)
        return changed(job)._replace(spec=spec, changed=since, due=first_slot(spec, since), count=0, claimed=None)

    def moment(self, job: Job, now: int) -> int:
        """changes._since: never before the change that it is made of."""
        return max(now, job.changed)

    def dropped(self, job: Job, spec: Spec, now: int) -> tuple[int, int] | None:
        """What a new schedule takes away although it was due and nobody had claimed it."""
        now = self.moment(job, now)
        if job.due is None or job.due >= now or job.status != SCHEDULED:
            return None
        if not is_change_of_when(job.spec, spec) or spec.run_at == job.due:
            return None
        return job.due, max(slot for slot in job.slots if slot < now)

    # --- shared/flows/claims.py

    def claimed_at_once(
        self, job: Job, near: bool, now: int, dropped: tuple[int, int] | None
    ) -> tuple[Job, tuple[Message, ...]]:
        """claims.claimed_at_once: what is due is near in any case. `dropped` is recorded first."""
        if job.status != SCHEDULED or job.due is None:
            return job, ()
        recorded = (Message(dropped[0], job.revision, dropped[1], job.id),) if dropped else ()
        if not (near or job.due < now):
            return job, recorded
        messages, claim = self.plan(job, now)
        return job._replace(due=claim.then, claimed=claim.until, count=claim.count), recorded + messages

    # --- shared/flows/changing.py

    def change(self, job_id: int, decide: Any, args: tuple[Any, ...], near: bool, now: int) -> Flow:
        """Changer.run: the job as it then is, and as it was read.

        None for the job: there is none; REFUSED: `decide` does not want it.
        """
        while True:
            job = yield self.store.get_job(job_id)
            if job is None:
                return None, None
            wanted = yield from decide(job, *args)
            if wanted is None:
                return job, job
            if wanted == REFUSED:
                return REFUSED, job
            written = yield from self.write_change(job, wanted, near, now)
            if written is not None:
                return written, job
            del job, wanted, written

    def write_change(self, seen: Job, wanted: Job, near: bool, now: int) -> Flow:
        """Changer._write; None: the job was changed by somebody else."""
        if wanted.revision == seen.revision:
            done = yield self.store.change_job(seen, wanted, False)
            return wanted if done == WRITTEN else None
        dropped = self.dropped(seen, wanted.spec, now)
        claimed, messages = self.claimed_at_once(wanted, near, now, dropped)
        del wanted, dropped
        if messages:
            done = yield from self.enqueue(messages, self.write_when, seen, claimed)
            return claimed if done == WRITTEN else None
        done = yield self.store.change_job(seen, claimed, True)
        return claimed if done == WRITTEN else None

    def write_when(self, messages: tuple[Message, ...], seen: Job, job: Job) -> Flow:
        done = yield self.store.change_job(seen, job, True)
        return (messages, done) if done == WRITTEN else ((), done)


def changed(job: Job) -> Job:
    return job._replace(revision=job.revision + 1, version=job.version + 1)


def is_change_of_when(old: Spec, new: Spec) -> bool:
    return (old.slots, old.one_off, old.max_runs) != (new.slots, new.one_off, new.max_runs)


def first_slot(spec: Spec, since: int) -> int | None:
    """slots.first_slot: a one-off's time may be past."""
    if spec.one_off:
        return spec.run_at
    return next((slot for slot in spec.slots if slot >= since), None)


def is_finished(job: Job, runs: tuple[Run | None, ...]) -> bool:
    """shown.is_finished."""
    if job.status == CANCELLED or any(run and run.status not in OVER for run in runs):
        return False
    if job.spec.one_off and (job.status == PAUSED or job.due is None):
        return runs[job.slots[0]] is not None
    if job.status == PAUSED or job.due is not None:
        return False
    return job.claimed is not None and are_recorded(job, runs, job.claimed)


def are_recorded(job: Job, runs: tuple[Run | None, ...], until: int) -> bool:
    """shown._are_recorded."""
    spans = [(slot, max(slot, run.until)) for slot, run in enumerate(runs) if run]
    if until not in {last for _, last in spans}:
        return False
    since = max(job.changed, spans[0][0])
    due = [slot for slot in job.slots if since <= slot <= until]
    return all(any(first <= slot <= last for first, last in spans) for slot in due)
