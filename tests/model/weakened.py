"""The protocol with one safeguard taken away, each where the search must find what the safeguard is for."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.model.configurations import CONFIGURATIONS, Configuration
from tests.model.flows import Flow, Flows
from tests.model.search import Verdict
from tests.model.store import WON, Claim, Refused, Store
from tests.model.world import RUNNING, SCHEDULED, Job, Message, Page, Run


@dataclass(frozen=True)
class Weakened:
    """`breaks`: how the violation that it leads to in `configuration` begins."""

    name: str
    configuration: Configuration
    breaks: str
    store: type[Store] = Store
    flows: type[Flows] = Flows

    def search(self) -> Verdict:
        return self.configuration.search(self.store, self.flows)


WEAKENED: list[Weakened] = []


def _named(name: str) -> Configuration:
    return next(one for one in CONFIGURATIONS if one.name == name)


def _breaks(breaks: str, where: str) -> Callable[[type], type]:
    """Enter the class below, a store or flows that lack something, under the first line of what it says."""

    def enter(weak: type) -> type:
        name = (weak.__doc__ or weak.__name__).splitlines()[0].rstrip(".")
        if issubclass(weak, Store):
            WEAKENED.append(Weakened(name, _named(where), breaks, store=weak))
        else:
            WEAKENED.append(Weakened(name, _named(where), breaks, flows=weak))
        return weak

    return enter


# --- claim and journal


@_breaks("I1: occurrence 0 is lost", "two ticks: two crashes")
class NoJournal(Flows):
    """No journal."""

    def write_page(self, messages: tuple[Message, ...]) -> Flow:
        yield from ()
        return 0


@_breaks("I1: occurrence 0 is lost", "two ticks: two crashes")
class SettledBeforeSent(Flows):
    """The page is removed before the sends."""

    def claim(self, due: Job, as_tick: bool) -> Flow:
        messages, claim = self.plan(due)
        page = yield from self.write_page(messages)
        outcome = yield self.store.claim(claim, as_tick)
        yield from self.settle(page)
        if outcome == WON:
            yield self.store.send(messages)


@_breaks("I1: occurrence 0 is lost", "two ticks: two crashes")
class RecoverySettlesFirst(Flows):
    """Recovery removes a page before it sends."""

    def recover_page(self, page: Page) -> Flow:
        again = yield from self.unsent(page.messages)
        yield self.store.settle(page.name)
        if again:
            yield self.store.send(again)


@_breaks("I1: occurrence", "two ticks: a claim for each occurrence, a lost answer")
class LostAnswerIsLost(Store):
    """A claim whose answer was lost counts as lost."""

    def is_made(self, job: Job, claim: Claim, fence: int) -> bool:
        return False


@_breaks("I1: occurrence", "two ticks: a claim for each occurrence, a lost answer")
class OvertakenIsLost(Store):
    """A claim that a newer tick has overtaken counts as lost."""

    def is_overtaken(self, job: Job, claim: Claim, fence: int) -> bool:
        return False


@_breaks("I1: occurrence", "two ticks: a claim for each occurrence, a lost answer")
class NoFence(Store):
    """A claim without the fence."""

    def may_be_claimed(self, job: Job, claim: Claim, fence: int) -> bool:
        return job.status == SCHEDULED and job.due == claim.due and job.revision == claim.revision


@_breaks("I1: occurrence", "submitted again: beyond the horizon, beside a tick, a lost answer")
class ClaimOfAnyRevision(Store):
    """A claim without the revision."""

    def may_be_claimed(self, job: Job, claim: Claim, fence: int) -> bool:
        return job.status == SCHEDULED and job.due == claim.due and job.fence <= fence


@_breaks("the handler of", "submit: two of one id, two crashes")
class RecoveryByRevision(Flows):
    """Recovery by revision alone."""

    def was_claimed(self, job: Job | None, message: Message) -> bool:
        return job is not None and job.revision == message.revision


@_breaks("I1: occurrence 0 is lost", "submitted again: failures and a crash")
class RecoveryTrustsStarts(Store):
    """Recovery that takes a started run for a done one."""

    def is_done(self, run: Run) -> bool:
        return True


# --- start and attempt


@_breaks("from here on no end", "two executors: two crashes")
class NoLeaseEnd(Store):
    """A start without the clause on the lease's end."""

    def may_start(self, there: Run | None, message: Message) -> bool:
        return super().may_start(there, message) and not (there and there.status == RUNNING)


@_breaks("I2: two attempts", "two executors: two stalls, a message twice")
class NoLease(Store):
    """A start that takes over whatever runs."""

    def may_start(self, there: Run | None, message: Message) -> bool:
        return super().may_start(there, message) or (there is not None and there.status == RUNNING)


@_breaks("I4: run", "two executors: two stalls, a message twice")
class NoStartCondition(Store):
    """A start without a condition."""

    def may_start(self, there: Run | None, message: Message) -> bool:
        return True


@_breaks("I7: the handler is called", "two executors: a crash, a lost answer, a message twice")
class NoLastAttempt(Flows):
    """An attempt more than the policy allows is made when the last one died."""

    def is_one_too_many(self, run: Run) -> bool:
        return False


@_breaks("I2: ", "two executors: a refused read, a lost answer, a message twice")
class MineByNumber(Store):
    """An attempt's writes are known by its number alone."""

    def is_mine(self, there: Run, run: Run, me: int) -> bool:
        return there.status == RUNNING and there.number == run.number


@_breaks("I2: ", "two executors: two stalls, a message twice")
class CallsWithoutLease(Store):
    """The target is called without a look at the lease."""

    def holds(self, there: Run | None, run: Run, me: int) -> bool:
        return True


@_breaks("run", "two executors: two crashes")
class MarkedBeforeSent(Flows):
    """A run is marked as dead-lettered before the dead-letter queue has it."""

    def exhaust(self, slot: int, run: Run, attempts: tuple[str, ...]) -> Flow:
        end = yield self.store.exhaust(slot, run, attempts)
        yield self.store.send_dead_letter(slot)
        return end


# --- cancel, and the same id again


@_breaks("I5: ", "cancel: failures and a crash")
class ReadBeforeStart(Flows):
    """The job is read before the start."""

    def attempt(self, message: Message) -> Flow:
        job = yield self.store.get_job_or_error()
        run = yield self.store.start(message)
        if isinstance(run, Refused):
            return self.has_served(message, run.there)
        return (yield from self.with_job(message.slot, message.revision, run, job))


@_breaks("I5: ", "cancel: failures and a crash")
class MarkBeforeCancel(Flows):
    """Cancel marks the runs before it writes the job."""

    def cancel(self) -> Flow:
        running = yield from self.mark_open_runs(2)
        job = yield from self.cancelled()
        if job is not None:
            yield self.store.answer_cancelled(job.by, running)


@_breaks("the handler of", "submitted again: for another time, a crash")
class NoRevisionCheck(Flows):
    """No check of the revision after the start."""

    def is_void(self, job: Job | None, revision: int) -> bool:
        return job is None or job.status != SCHEDULED


@_breaks("I5: ", "submit: beside a cancel, a lost answer and a crash")
class SameByRevision(Store):
    """A submit made twice knows its own job by the revision."""

    def is_same(self, job: Job, there: Job) -> bool:
        return there.by == job.by and there.revision == job.revision


@_breaks("I1: occurrence 0", "submitted again: failures and a lost answer")
class CancelOfAnyRun(Store):
    """A cancel marks the runs of a job submitted since."""

    def is_of(self, run: Run, revision: int) -> bool:
        return True


@_breaks("I1: occurrence 0", "submitted again: failures and a lost answer")
class LooksOnce(Flows):
    """A submit does not look again for a run of the job before it."""

    def is_old(self, ran: Run | None, job: Job) -> bool:
        return False


# --- the audit

for _name in ("audit: a purged queue and a crash", "audit: a tick later than 90 s and a crash"):
    WEAKENED.append(Weakened(f"No {_name}", replace(_named(_name), audit=False), "I1: occurrence"))
