"""shared/flows/submit.py, call by call."""

from tests.model.flows_changes import ChangeFlows, first_slot, is_finished
from tests.model.flows_claims import Flow
from tests.model.world import (
    CANCELLED,
    SCHEDULED,
    Job,
    Message,
    Run,
    Submission,
)


class SubmitFlows(ChangeFlows):
    """A job into the store, and into the queue if it is due within the horizon."""

    def submit(self, wish: Submission, now: int) -> Flow:
        """SubmitFlow.submit."""
        due_at = first_slot(wish.spec, now)
        if due_at is None:
            return  # this schedule never fires
        job = Job(wish.by, wish.spec, SCHEDULED, due_at, None, 1, now, id=wish.job, created=now)
        there = yield from self.store_job(job, None, wish.near, now)
        if there is not None and not (yield from self.again(job, there, wish.near, now)):
            return  # 409
        yield self.store.answer_accepted(wish.job, wish.by)

    def again(self, job: Job, there: Job, near: bool, now: int) -> Flow:
        """SubmitFlow.again: whether the job took the place of `there`, which has to be over."""
        if there.status != CANCELLED:
            runs = yield self.store.newest(job.id)
            if not is_finished(there, runs):
                return False
            del runs
        ran = yield self.store.get_run(job.due)
        if ran:
            return False
        later = job._replace(revision=there.revision + 1, version=there.version + 1)
        other = yield from self.store_job(later, there, near, now)
        if other is not None:
            return False
        ran = yield self.store.get_run(job.due)
        if self.began_before(ran, later):
            del ran
            yield from self.change(job.id, self.decide_take_back, (later, now), True, now)
            return False
        return True

    def began_before(self, ran: Run | None, job: Job) -> bool:
        """Whether an executor began the occurrence for the job that was there before."""
        return ran is not None and ran.revision < job.revision

    def decide_take_back(self, there: Job, job: Job, now: int) -> Flow:
        yield from ()
        mine = there.revision == job.revision and there.status == SCHEDULED
        return self.cancelled(there, now) if mine else None

    def store_job(self, job: Job, instead_of: Job | None, near: bool, now: int) -> Flow:
        """SubmitFlow._store: None, or the job that holds the id."""
        claimed, messages = self.claimed_at_once(job, near, now, None)
        if not messages:
            return (yield from self.put(job, instead_of))
        return (yield from self.enqueue(messages, self.write_new, claimed, instead_of))

    def write_new(self, messages: tuple[Message, ...], job: Job, instead_of: Job | None) -> Flow:
        there = yield from self.put(job, instead_of)
        return (messages, None) if there is None else ((), there)

    def put(self, job: Job, instead_of: Job | None) -> Flow:
        """Jobs._put: None, or the job that holds the id."""
        done = yield self.store.create(job) if instead_of is None else self.store.replace_finished(job, instead_of)
        if done:
            return None
        there = yield self.store.get_job(job.id)
        return None if self.store.is_same(job, there) else there
