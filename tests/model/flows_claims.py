"""shared/rules/plan.py, and shared/flows/tick.py, claims.py, recover.py, audit.py and enqueue.py, call by call."""

from collections.abc import Generator
from typing import Any

from tests.model.calls import Call, Claim
from tests.model.store import Store
from tests.model.store_jobs import OVERTAKEN, UNSURE, WON
from tests.model.world import ALL, CANCELLED, OVER, PAUSED, RUNNING, SCHEDULED, SKIP, Job, Message, Page, Run, World

Flow = Generator[Call, Any, Any]


class ClaimFlows:
    """`per_claim`: how many occurrences lie within the horizon of one claim.

    `asks`: users may ask for runs. `wakes`: jobs wait for others. `instant`: no time passes during a user's call.
    """

    asks = wakes = instant = False

    def __init__(self, store: Store, per_claim: int = 1) -> None:
        self.store = store
        self.per_claim = per_claim

    # --- shared/rules/plan.py

    def plan(self, job: Job, now: int) -> tuple[tuple[Message, ...], Claim]:
        """What a claim sends, and what it makes of the job. All that is due is late, and so missed."""
        slots = tuple(slot for slot in job.slots if job.due is not None and slot >= job.due)
        if job.spec.one_off:
            slots = job.slots
        left = job.spec.max_runs - job.count if job.spec.max_runs is not None else len(slots)
        spans, runs = self.missed(job, slots, now)
        last = runs[-1] if runs else spans[-1][1] if spans else -1
        following = tuple(slot for slot in slots if slot > last)
        runs = (*runs, *following[: max(0, min(left, self.per_claim) - len(runs))])
        count = job.count + len(runs)
        last = runs[-1] if runs else last
        is_spent = job.spec.max_runs is not None and count >= job.spec.max_runs
        then = next((slot for slot in slots if slot > last and not is_spent), None)
        skipped = tuple(Message(first, job.revision, until, job.id) for first, until in spans)
        messages = (*skipped, *(Message(slot, job.revision, job=job.id) for slot in runs))
        return messages, Claim(job.due, job.revision, last, then, count, job.id)

    def missed(self, job: Job, slots: tuple[int, ...], now: int) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        """plan._missed: the spans to record as skipped, and the late runs."""
        late = tuple(slot for slot in slots if slot < now)
        if not late or job.spec.catch_up == ALL or job.spec.one_off:
            return (), ()
        if job.spec.catch_up == SKIP:
            return ((late[0], late[-1]),), ()
        return (((late[0], late[-2]),) if len(late) > 1 else ()), (late[-1],)

    # --- shared/flows/tick.py, claims.py, recover.py

    def tick(self) -> Flow:
        """TickFlow.run, with the lease taken (see actors)."""
        yield from self.recover()
        due = yield self.store.due()
        if due:
            job, now = due
            del due
            yield from self.claim(job, now, True)

    def claim(self, job: Job, now: int, as_tick: bool) -> Flow:
        """Claimer.run: slate.write → jobs.claim → queue.send → settle. The job fills a tick's only page."""
        messages, claim = self.plan(job, now)
        page = yield from self.write_page(messages)
        outcome = yield self.store.claim(claim, as_tick)
        if outcome == WON:
            yield self.store.send(messages)
        if outcome != OVERTAKEN:
            yield from self.settle(page)

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
        jobs = yield self.store.get_jobs()
        claimed = tuple(self.was_claimed(jobs[message.job], message) for message in messages)
        known = tuple(jobs[message.job] is not None for message in messages)
        del jobs
        if not any(known):
            return ()
        runs = yield self.store.some_runs(tuple(message.slot for message in messages))
        return tuple(
            message
            for message, is_claimed, is_known in zip(messages, claimed, known, strict=True)
            if is_known and self.is_wanted(dict(runs).get(message.slot), is_claimed)
        )

    def is_wanted(self, run: Run | None, was_claimed: bool) -> bool:
        """recover._is_wanted: a run that a user asked for has its item for a claim."""
        if run is not None and self.is_done(run):
            return False
        return (run is not None and run.asked is not None) or was_claimed

    def is_done(self, run: Run) -> bool:
        """Started is not enough: the start may be withdrawn."""
        return run.status in OVER

    def was_claimed(self, job: Job | None, message: Message) -> bool:
        if job is None or job.revision < message.revision:
            return False
        if job.revision > message.revision:
            return self.is_owed_a_record(job, message.slot)
        if message.until >= 0 and message.slot < job.changed:  # what a new schedule has taken away
            return True
        if job.claimed is None or message.slot > job.claimed:
            return False
        if job.due is not None and job.due <= message.slot:
            return False
        return message.slot in job.slots

    def is_owed_a_record(self, job: Job, slot: int) -> bool:
        """recover._is_owed_a_record: a void occurrence that was due before the change, and so never comes again."""
        is_claimed = job.due is None or job.due > slot
        is_own = job.created <= slot < job.changed  # by whichever schedule it had then
        return job.status != CANCELLED and is_own and is_claimed

    # --- shared/flows/enqueue.py

    def enqueue(self, messages: tuple[Message, ...], write: Any, *args: Any) -> Flow:
        """Enqueuer.run: journal.write → `write` → send → settle.

        `write` gives what of the messages it stands for, and what it found; after UNSURE the page stays.
        """
        page = yield from self.write_page(messages)
        written, found = yield from write(messages, *args)
        if written:
            yield self.store.send(written)
        if found != UNSURE:
            yield from self.settle(page)
        return found

    # --- shared/flows/audit.py

    def audit(self, job: Job | None, now: int, abandoned: tuple[Message, ...], pages: tuple[Page, ...]) -> Flow:
        """AuditFlow._page, with what the scan showed (see actors)."""
        if job and job.status == SCHEDULED and job.due is not None and job.due < now:
            yield from self.claim(job, now, False)
        if job and claimed_slots(job):
            yield from self.send_unstarted(job)
        del job
        if abandoned:
            jobs = yield self.store.get_jobs()
            abandoned = tuple(message for message in abandoned if jobs[message.job])
            del jobs
            if abandoned:
                yield self.store.send(abandoned)
        while pages:
            page, pages = pages[0], pages[1:]
            yield from self.recover_page(page)

    def send_unstarted(self, job: Job) -> Flow:
        recorded = yield self.store.recorded(job.id)
        messages = tuple(Message(slot, job.revision, job=job.id) for slot in claimed_slots(job) if slot not in recorded)
        if messages:
            yield self.store.send(messages)


def claimed_slots(job: Job) -> tuple[int, ...]:
    """staleness.claimed_long_ago: the claimed occurrences that must have a run by now."""
    if job.status != SCHEDULED or job.claimed is None:
        return ()
    return tuple(slot for slot in job.slots if slot <= job.claimed and (job.spec.one_off or slot >= job.changed))


def abandoned(world: World) -> tuple[Message, ...]:
    """staleness.is_abandoned: begun, and nobody at it; without those that wait for their job to be resumed."""
    return tuple(
        Message(slot, run.revision, job=world.owner[slot])
        for slot, run in enumerate(world.runs)
        if run and run.status not in OVER and not run.lease and not waits_for_resume(world.jobs[world.owner[slot]], run)
    )


def waits_for_resume(job: Job | None, run: Run) -> bool:
    """audit._is_paused."""
    return job is not None and job.status == PAUSED and run.asked is None and run.status != RUNNING
