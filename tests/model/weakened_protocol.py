"""Submit, tick, execute, cancel and audit with one safeguard taken away, each where the search must find it."""

from dataclasses import replace

from tests.model.calls import Claim, Refused
from tests.model.flows import Flow, Flows
from tests.model.flows_changes import REFUSED
from tests.model.store import Store
from tests.model.store_jobs import WON
from tests.model.weakening import WEAKENED, Weakened, breaks, named
from tests.model.world import RUNNING, SCHEDULED, Job, Message, Page, Run

# --- claim and journal


@breaks("I1: occurrence 0 is lost", "two ticks: a crash")
class NoJournal(Flows):
    """No journal."""

    def write_page(self, messages: tuple[Message, ...]) -> Flow:
        yield from ()
        return 0


@breaks("I1: occurrence 0 is lost", "two ticks: a crash")
class SettledBeforeSent(Flows):
    """The page is removed before the sends."""

    def claim(self, job: Job, now: int, as_tick: bool) -> Flow:
        messages, claim = self.plan(job, now)
        page = yield from self.write_page(messages)
        outcome = yield self.store.claim(claim, as_tick)
        yield from self.settle(page)
        if outcome == WON:
            yield self.store.send(messages)


@breaks("I1: occurrence 0 is lost", "two ticks: two crashes")
class RecoverySettlesFirst(Flows):
    """Recovery removes a page before it sends."""

    def recover_page(self, page: Page) -> Flow:
        again = yield from self.unsent(page.messages)
        yield self.store.settle(page.name)
        if again:
            yield self.store.send(again)


@breaks("I1: occurrence", "two ticks: a claim for each occurrence, a lost answer")
class LostAnswerIsLost(Store):
    """A claim whose answer was lost counts as lost."""

    def is_made(self, job: Job, claim: Claim, fence: int) -> bool:
        return False


@breaks("I1: occurrence", "two ticks: a claim for each occurrence, a lost answer")
class OvertakenIsLost(Store):
    """A claim that a newer tick has overtaken counts as lost."""

    def is_overtaken(self, job: Job, claim: Claim, fence: int) -> bool:
        return False


@breaks("I1: occurrence", "two ticks: a claim for each occurrence, a lost answer")
class NoFence(Store):
    """A claim without the fence."""

    def may_be_claimed(self, job: Job, claim: Claim, fence: int) -> bool:
        return job.status == SCHEDULED and job.due == claim.due and job.revision == claim.revision


@breaks("I1: occurrence", "submitted again: beyond the horizon, beside a tick, a lost answer")
class ClaimOfAnyRevision(Store):
    """A claim without the revision."""

    def may_be_claimed(self, job: Job, claim: Claim, fence: int) -> bool:
        return job.status == SCHEDULED and job.due == claim.due and job.fence <= fence


@breaks("the handler of", "submit: two of one id, two crashes")
class RecoveryByRevision(Flows):
    """Recovery by revision alone."""

    def was_claimed(self, job: Job | None, message: Message) -> bool:
        return job is not None and job.revision == message.revision


@breaks("I1: occurrence 0 is lost", "submitted again: failures and a crash")
class RecoveryTrustsStarts(Flows):
    """Recovery that takes a started run for a done one."""

    def is_done(self, run: Run) -> bool:
        return True


# --- start and attempt


@breaks("from here on no end", "two executors: two crashes")
class NoLeaseEnd(Store):
    """A start without the clause on the lease's end."""

    def may_start(self, there: Run | None, message: Message) -> bool:
        return super().may_start(there, message) and not (there and there.status == RUNNING)


@breaks("I2: two attempts", "two executors: two stalls, a message twice")
class NoLease(Store):
    """A start that takes over whatever runs."""

    def may_start(self, there: Run | None, message: Message) -> bool:
        return super().may_start(there, message) or (there is not None and there.status == RUNNING)


@breaks("I4: run", "two executors: two stalls, a message twice")
class NoStartCondition(Store):
    """A start without a condition."""

    def may_start(self, there: Run | None, message: Message) -> bool:
        return True


@breaks("I7: the handler is called", "two executors: a crash, a lost answer, a message twice")
class NoLastAttempt(Flows):
    """An attempt more than the policy allows is made when the last one died."""

    def is_one_too_many(self, run: Run) -> bool:
        return False


@breaks("I2: ", "two executors: a refused read, a lost answer, a message twice")
class MineByNumber(Store):
    """An attempt's writes are known by its number alone."""

    def is_mine(self, there: Run, run: Run, me: int) -> bool:
        return there.status == RUNNING and there.number == run.number


@breaks("I2: ", "two executors: two stalls, a message twice")
class CallsWithoutLease(Store):
    """The target is called without a look at the lease."""

    def holds(self, there: Run | None, run: Run, me: int) -> bool:
        return True


@breaks("run", "two executors: two crashes")
class MarkedBeforeSent(Flows):
    """A run is marked as dead-lettered before the dead-letter queue has it."""

    def exhaust(self, slot: int, run: Run, attempts: tuple[str, ...]) -> Flow:
        end = yield self.store.exhaust(slot, run, attempts)
        yield self.store.send_dead_letter(slot)
        return end


# --- cancel, and the same id again


@breaks("I5: ", "cancel: failures and a crash")
class ReadBeforeStart(Flows):
    """The job is read before the start."""

    def attempt(self, message: Message) -> Flow:
        job = yield self.store.get_job_or_error(message.job)
        run = yield self.store.start(message)
        if isinstance(run, Refused):
            return self.has_served(message, run.there)
        return (yield from self.with_job(message, run, job))


@breaks("I5: ", "cancel: failures and a crash")
class MarkBeforeCancel(Flows):
    """Cancel marks the runs before it writes the job."""

    def cancel(self, now: int, job_id: int = 0) -> Flow:
        running = yield from self.mark_open_runs(job_id, 2)
        job, _ = yield from self.change(job_id, self.decide_cancel, (now,), True, now)
        if job not in (None, REFUSED):
            yield self.store.answer_cancelled(job.by, running)


@breaks("the handler of", "submitted again: for another time, a crash")
class NoRevisionCheck(Flows):
    """No check of the revision after the start."""

    def is_void(self, job: Job | None, run: Run, revision: int) -> bool:
        return job is None or job.status != SCHEDULED


@breaks("I5: ", "submit: beside a cancel, a lost answer and a crash")
class SameByRevision(Store):
    """A submit made twice knows its own job by the revision."""

    def is_same(self, job: Job, there: Job) -> bool:
        return there.by == job.by and there.revision == job.revision


@breaks("I1: occurrence 0", "submitted again: failures and a lost answer")
class CancelOfAnyRun(Store):
    """A cancel marks the runs of a job submitted since."""

    def is_of_older(self, run: Run, revision: int) -> bool:
        return True


@breaks("I1: occurrence 0", "submitted again: failures and a lost answer")
class LooksOnce(Flows):
    """A submit does not look again for a run of the job before it."""

    def began_before(self, ran: Run | None, job: Job) -> bool:
        return False


# --- the audit

for _name in ("audit: a purged queue and a crash", "audit: a tick later than 90 s and a crash"):
    WEAKENED.append(Weakened(f"No {_name}", replace(named(_name), audit=False), "I1: occurrence"))
