"""The flows of shared/flows: each `yield` is one AWS call, in the order of the code. They decide as the code does.

A flow's place is its line and its variables, so that two pasts that lead to the same line with the same variables are
searched once: what a flow knows stands in plain variables of immutable values, and no loop runs over a hidden iterator.
"""

from collections.abc import Generator
from typing import Any

from tests.model.store import (
    CANCEL_REQUESTED,
    ERROR,
    LEASE_LOST,
    OK,
    OVERTAKEN,
    WON,
    Call,
    Claim,
    Refused,
    Store,
    Work,
    closed,
    earlier_closed,
)
from tests.model.world import (
    CANCELLED,
    FAILED,
    NOBODY,
    OVER,
    RUNNING,
    SCHEDULED,
    SUCCEEDED,
    Job,
    Letter,
    Message,
    Page,
    Run,
    Spec,
    World,
)

Flow = Generator[Call, Any, Any]


class Flows:
    """`per_claim`: how many occurrences lie within the horizon of one claim."""

    def __init__(self, store: Store, per_claim: int = 1) -> None:
        self.store = store
        self.per_claim = per_claim

    # --- shared/flows/tick.py, claims.py, recover.py

    def tick(self) -> Flow:
        """TickFlow.run, with the lease taken (see actors)."""
        yield from self.recover()
        due = yield self.store.due()
        if due:
            yield from self.claim(due, True)

    def claim(self, due: Job, as_tick: bool) -> Flow:
        """Claimer.run: journal.write → jobs.claim → queue.send → journal.settle."""
        messages, claim = self.plan(due)
        page = yield from self.write_page(messages)
        outcome = yield self.store.claim(claim, as_tick)
        if outcome == WON:
            yield self.store.send(messages)
        if outcome != OVERTAKEN:
            yield from self.settle(page)

    def plan(self, due: Job) -> tuple[tuple[Message, ...], Claim]:
        """rules.plan: what a claim sends, and what it makes of the job."""
        first = due.slots.index(due.due) if due.due is not None else 0
        taken = due.slots[first : first + self.per_claim]
        left = due.slots[first + self.per_claim :]
        claim = Claim(due.due, due.revision, taken[-1], left[0] if left else None)
        return tuple(Message(slot, due.revision) for slot in taken), claim

    def write_page(self, messages: tuple[Message, ...]) -> Flow:
        return (yield self.store.write_page(messages))

    def settle(self, page: int) -> Flow:
        yield self.store.settle(page)

    def recover(self) -> Flow:
        """Recovery.run."""
        page = yield self.store.old_page()
        while page:
            yield from self.recover_page(page)
            page = yield self.store.old_page()

    def recover_page(self, page: Page) -> Flow:
        again = yield from self.unsent(page.messages)
        if again:
            yield self.store.send(again)
        yield self.store.settle(page.name)

    def unsent(self, messages: tuple[Message, ...]) -> Flow:
        """Recovery.unsent. A run that has merely started is no reason to leave its message out."""
        job = yield self.store.get_job()
        claimed = tuple(message for message in messages if self.was_claimed(job, message))
        del job
        if not claimed:
            return ()
        over = yield self.store.over_among(claimed)
        return tuple(message for message in claimed if message.slot not in over)

    def was_claimed(self, job: Job | None, message: Message) -> bool:
        if job is None or job.revision != message.revision:
            return False
        if job.claimed is None or message.slot > job.claimed:
            return False
        if job.due is not None and job.due <= message.slot:
            return False
        return message.slot in job.slots

    # --- shared/flows/submit.py

    def submit(self, spec: Spec, now: int) -> Flow:
        """SubmitFlow.submit."""
        coming = spec.slots if spec.one_off else tuple(slot for slot in spec.slots if slot >= now)
        if not coming:
            return  # this schedule never fires
        job = Job(spec.by, spec.slots, spec.one_off, SCHEDULED, coming[0], None, 1, now)
        there = yield from self.store_job(job, None, spec.near)
        if there is not None and not (yield from self.again(job, there, spec.near)):
            return  # 409
        yield self.store.answer_accepted(spec.by)

    def again(self, job: Job, there: Job, near: bool) -> Flow:
        """SubmitFlow._again: whether the job took the place of `there`, which has to be over."""
        if there.status != CANCELLED:
            runs = yield self.store.newest()
            if not is_finished(there, runs):
                return False
            del runs
        ran = yield self.store.get_run(job.due)
        if ran:
            return False
        later = job._replace(revision=there.revision + 1)
        other = yield from self.store_job(later, there, near)
        if other is not None:
            return False
        ran = yield self.store.get_run(job.due)
        if self.is_old(ran, later):
            yield self.store.cancel_job(later)
            return False
        return True

    def is_old(self, ran: Run | None, job: Job) -> bool:
        """Whether an executor began the occurrence for the job that was there before."""
        return ran is not None and ran.revision < job.revision

    def store_job(self, job: Job, instead_of: Job | None, near: bool) -> Flow:
        """SubmitFlow._store: None, or the job that holds the id. journal.write → jobs.create → queue.send → settle."""
        if not near:
            return (yield from self.put(job, instead_of))
        messages, claim = self.plan(job)
        claimed = job._replace(due=claim.then, claimed=claim.until)
        page = yield from self.write_page(messages)
        there = yield from self.put(claimed, instead_of)
        if there is None:
            yield self.store.send(messages)
        yield from self.settle(page)
        return there

    def put(self, job: Job, instead_of: Job | None) -> Flow:
        """Jobs._put: None, or the job that holds the id."""
        done = yield self.store.create(job) if instead_of is None else self.store.replace_finished(job, instead_of)
        if done:
            return None
        there = yield self.store.get_job()
        return None if self.store.is_same(job, there) else there

    # --- shared/flows/control.py

    def cancel(self) -> Flow:
        """ControlFlow.cancel: the job → its open runs → the answer."""
        job = yield from self.cancelled()
        if job is None:
            return  # 404, 409
        running = yield from self.mark_open_runs(job.revision)
        yield self.store.answer_cancelled(job.by, running)

    def cancelled(self) -> Flow:
        job = yield self.store.get_job()
        while job and job.status != CANCELLED:
            runs = yield self.store.newest()
            if is_finished(job, runs):
                return None
            del runs
            job = yield self.store.cancel_job(job)
            if job is None:
                job = yield self.store.get_job()
        return job

    def mark_open_runs(self, revision: int) -> Flow:
        found, running = (yield self.store.open_runs()), ()
        while found:
            (slot, run), found = found[0], found[1:]
            status = yield from self.request_cancel(slot, revision, run.status)
            if status == RUNNING:
                running = (*running, slot)
        return running

    def request_cancel(self, slot: int, revision: int, status: str) -> Flow:
        """Runs.request_cancel, for the job that was cancelled with `revision`."""
        if status == FAILED:
            status = yield self.store.cancel_waiting(slot, revision)
        if status == RUNNING:
            status = yield self.store.mark_running(slot, revision)
        return status

    # --- shared/flows/execute.py, attempt.py

    def execute(self, message: Message) -> Flow:
        """AttemptFlow.make: runs.start → jobs.get → target → its end. Not acknowledged: the message comes back."""
        done = yield from self.attempt(message)
        if done:
            yield self.store.acknowledge()

    def attempt(self, message: Message) -> Flow:
        """Whether the message has served its purpose."""
        run = yield self.store.start(message)
        if isinstance(run, Refused):
            return self.has_served(message, run.there)
        job = yield self.store.get_job_or_error()
        return (yield from self.with_job(message.slot, message.revision, run, job))

    def has_served(self, message: Message, there: Run) -> bool:
        """AttemptFlow._refused: else it is put back, until the lease or the wait is over."""
        return there.revision > message.revision or there.status in OVER

    def without_void_messages(self, world: World) -> World:
        """`world` without the messages that nobody holds and whose run is over: they would only be acknowledged."""

        def is_void(letter: Letter) -> bool:
            there = world.runs[letter.message.slot]
            if there is None or letter.holder != NOBODY or self.store.may_start(there, letter.message):
                return False
            return there.status in OVER

        left = tuple(letter for letter in world.queue if not is_void(letter))
        return world if left == world.queue else world._replace(queue=left)

    def with_job(self, slot: int, revision: int, run: Run, job: Any) -> Flow:
        """AttemptFlow._effect, and what follows from it."""
        if job == ERROR:
            return (yield from self.give_back(slot, run))
        if self.is_void(job, revision):
            return (yield from self.withdraw(slot, run, job))
        if self.is_one_too_many(run):
            return (yield from self.exhaust(slot, run, earlier_closed(run)))
        work = Work(job.by, job.slots)
        del job, revision
        outcome = yield self.store.call_target(slot, run, work)
        if outcome == LEASE_LOST:
            return False
        del work
        if outcome == SUCCEEDED:
            return (yield self.store.succeed(slot, run)) == OK
        return (yield from self.fail(slot, run))

    def is_void(self, job: Job | None, revision: int) -> bool:
        return job is None or job.status != SCHEDULED or job.revision != revision

    def is_one_too_many(self, run: Run) -> bool:
        """The last attempt that was allowed has died."""
        return run.number > self.store.max_attempts

    def withdraw(self, slot: int, run: Run, job: Job | None) -> Flow:
        """AttemptFlow._withdraw: forget the start if the occurrence may come again, else record why it never ran."""
        may_come, comes, revision = may_come_again(job, slot), comes_again(job, slot), job.revision if job else 0
        del job
        if run.number > 1 and comes:
            end = yield self.store.hand_over(slot, run, revision)
        elif run.number > 1:
            end = yield self.store.cancel_run(slot, run, earlier_closed(run))
        elif may_come:
            end = yield self.store.forget_start(slot, run, comes)
        else:
            end = yield self.store.skip_started(slot, run)
        if end == CANCEL_REQUESTED:
            end = yield self.store.cancel_run(slot, run, earlier_closed(run))
        return end == OK

    def give_back(self, slot: int, run: Run) -> Flow:
        """AttemptFlow._give_back: this was no attempt."""
        if run.number == 1:
            end = yield self.store.forget_start(slot, run)
        else:
            end = yield self.store.fail(slot, run, earlier_closed(run))
        if end == CANCEL_REQUESTED:
            yield self.store.cancel_run(slot, run, earlier_closed(run))
        return False

    def fail(self, slot: int, run: Run) -> Flow:
        """AttemptFlow._fail."""
        attempts = closed(run, FAILED)
        if run.number >= self.store.max_attempts:
            return (yield from self.exhaust(slot, run, attempts))
        end = yield self.store.fail(slot, run, attempts)
        if end == CANCEL_REQUESTED:
            return (yield self.store.cancel_run(slot, run, attempts)) == OK
        return False  # it comes back after its backoff

    def exhaust(self, slot: int, run: Run, attempts: tuple[str, ...]) -> Flow:
        """AttemptFlow._exhaust: the dead-letter queue first, then the mark."""
        there = yield self.store.get_own_run(slot, run)
        if there is None:
            return False
        cancel_requested = there.cancel_requested
        del there
        end = CANCEL_REQUESTED
        if not cancel_requested:
            yield self.store.send_dead_letter(slot)
            end = yield self.store.exhaust(slot, run, attempts)
        if end == CANCEL_REQUESTED:
            end = yield self.store.cancel_run(slot, run, attempts)
        return end == OK

    # --- shared/flows/audit.py

    def audit(self, job: Job | None, abandoned: tuple[Message, ...], pages: tuple[Page, ...]) -> Flow:
        """AuditFlow._page, with what the scan showed (see actors)."""
        if job and job.status == SCHEDULED and job.due is not None:
            yield from self.claim(job, False)
        if job and claimed_slots(job):
            yield from self.send_unstarted(job)
        if abandoned:
            there = yield self.store.get_job()
            if there:
                del there
                yield self.store.send(abandoned)
        while pages:
            page, pages = pages[0], pages[1:]
            yield from self.recover_page(page)

    def send_unstarted(self, job: Job) -> Flow:
        recorded = yield self.store.recorded()
        messages = tuple(Message(slot, job.revision) for slot in claimed_slots(job) if slot not in recorded)
        if messages:
            yield self.store.send(messages)


def is_finished(job: Job, runs: tuple[Run | None, ...]) -> bool:
    """inspect.is_finished."""
    if job.status != SCHEDULED or job.due is not None:
        return False
    if any(run and run.status not in OVER for run in runs):
        return False
    return job.claimed is not None and runs[job.claimed] is not None


def may_come_again(job: Job | None, slot: int) -> bool:
    """attempt._may_come_again: the present schedule counts from the last change of when."""
    return job is None or slot >= job.changed or (job.one_off and slot in job.slots)


def comes_again(job: Job | None, slot: int) -> bool:
    """attempt._comes_again."""
    return job is not None and job.status == SCHEDULED and may_come_again(job, slot) and slot in job.slots


def claimed_slots(job: Job) -> tuple[int, ...]:
    """staleness.claimed_long_ago: the claimed occurrences that must have a run by now."""
    if job.status != SCHEDULED or job.claimed is None:
        return ()
    return tuple(slot for slot in job.slots if slot <= job.claimed and (job.one_off or slot >= job.changed))
