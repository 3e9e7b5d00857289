"""shared/flows/gates.py, overlap.py, groups.py and dependencies.py, call by call, with the real rule of overlap."""

from typing import NamedTuple

from shared.rules import overlap as rules
from shared.rules.overlap import Step
from tests.model.calls import ERROR, LEASE_LOST
from tests.model.flows_claims import Flow
from tests.model.flows_control import ControlFlows
from tests.model.store_gates import EXPIRED, LIVE
from tests.model.world import (
    CANCELLED,
    DEAD_LETTERED,
    ENQUEUED,
    FAILED,
    NOBODY,
    OVER,
    OVERLAP,
    PARENT_FAILED,
    REPLACED,
    RUNNING,
    SCHEDULED,
    SKIPPED,
    SUCCEEDED,
    Holder,
    Job,
    Mark,
    Message,
    Place,
    Run,
)

PASSED = "passed"
TRIES = 2  # of 8 and 4: who finds the place written by others again and again waits


class Word(NamedTuple):
    """MustSkipError, or MustWaitError."""

    is_skip: bool
    reason: str


class GateFlows(ControlFlows):
    """What a start must pass before its target is called."""

    def enter(self, job: Job, slot: int, run: Run) -> Flow:
        """Gates.enter: PASSED, ERROR, or a Word. No gate but the last takes what it would have to give back."""
        for_parents = yield from self.enter_parents(job, slot, run)
        if for_parents != PASSED:
            return for_parents
        del for_parents
        for_place = yield from self.enter_overlap(job, slot, run)
        if for_place != PASSED:
            return for_place
        del for_place
        return (yield from self.enter_group(job, slot, run))

    # --- shared/flows/dependencies.py

    def enter_parents(self, job: Job, slot: int, run: Run) -> Flow:
        """ParentsGate.enter."""
        if not job.spec.parents or slot != job.spec.run_at or self.is_past(run):
            return PASSED
        jobs = yield self.store.get_jobs_or_error()
        if jobs == ERROR:
            return ERROR
        seen = tuple(jobs[parent] for parent in job.spec.parents)
        del jobs
        runs = yield self.store.some_runs(tuple(parent.spec.run_at for parent in seen if parent))
        found = tuple(self.standing_of(one, dict(runs).get(one.spec.run_at)) if one else FAILED for one in seen)
        del runs
        standings = yield from self.moved(seen, found)
        if FAILED in standings and job.spec.on_parent_failure == "skip":
            return Word(True, PARENT_FAILED)
        return Word(False, "depends_on") if ENQUEUED in standings else PASSED

    def moved(self, seen: tuple[Job | None, ...], found: tuple[str, ...]) -> Flow:
        """Parents._moved: those that look failed and were changed while they were looked at may yet succeed."""
        if FAILED not in found:
            return found
        jobs = yield self.store.get_jobs()
        return tuple(
            ENQUEUED if how == FAILED and one and jobs[one.id] and jobs[one.id].revision != one.revision else how
            for one, how in zip(seen, found, strict=True)
        )

    def is_past(self, run: Run) -> bool:
        """dependencies.is_past: its handler was called before. A lost attempt may have died before it came to that."""
        return any(how == FAILED for how in run.attempts[:-1])

    def standing_of(self, job: Job, run: Run | None) -> str:
        """dependencies.standing_of of shown.shown_status: succeeded, failed, or (all else) enqueued."""
        shown = job.status
        if job.status == CANCELLED:
            shown = run.status if run and run.status not in (SKIPPED, FAILED, ENQUEUED) else CANCELLED
        elif run is not None and (job.status == SCHEDULED or run.status in OVER):
            shown = run.status
        if shown == SUCCEEDED:
            return SUCCEEDED
        return FAILED if shown in (DEAD_LETTERED, CANCELLED, SKIPPED) else ENQUEUED

    def is_spare(self, message: Message, word: Word) -> bool:
        return message.woken and word.reason == "depends_on"

    def wake(self, parent: int) -> Flow:
        """families.Waker: those that may be waiting for the job look now. Once too often does no harm."""
        messages = yield self.store.children(parent)
        if messages:
            yield self.store.send(messages)

    # --- shared/flows/overlap.py

    def enter_overlap(self, job: Job, slot: int, run: Run) -> Flow:
        """OverlapGate.enter."""
        if run.cancel_requested:
            return Word(True, REPLACED)
        if job.spec.overlap == "allow":
            return PASSED
        tries = TRIES
        while tries:
            tries -= 1
            decision = yield from self.decide_overlap(job, slot, run)
            if decision == ERROR:
                return ERROR
            if decision is None:
                continue
            if decision.step is Step.GO:
                return PASSED
            if decision.step is Step.SKIP:
                return Word(True, OVERLAP)
            replaced = tuple(sorted(decision.replaced))
            del decision
            if not (yield from self.replace(job, replaced)):
                break
            del replaced
        return Word(False, OVERLAP)

    def decide_overlap(self, job: Job, me: int, run: Run) -> Flow:
        """OverlapGate._decide; None: another run has written the place since it was read."""
        seen = yield self.store.get_place()
        if seen == ERROR:
            return ERROR
        known = yield from self.with_earlier(job, me, seen)
        known = yield from self.open_place(me, known)
        real = rules.Place(known.holder, known.waiting, known.earlier, known.displaced)
        decision = rules.decide(job.spec.overlap, me, has_begun=run.number > 1, place=real)
        place = decision.place
        wanted = Place(place.holder, place.waiting, place.earlier, place.displaced, known.version)
        del known, real, place
        if self.must_write(decision, wanted, seen):
            if not (yield self.store.write_place(wanted)):
                return None
        else:
            yield self.store.leave_place()
        return decision

    def must_write(self, decision: rules.Decision, wanted: Place, seen: Place) -> bool:
        """A run that goes on always writes: what others have read of the place before is void."""
        return decision.step is Step.GO or wanted != seen

    def with_earlier(self, job: Job, me: int, seen: Place) -> Flow:
        """OverlapGate._with_earlier."""
        if seen.version == job.version:
            return seen
        found = yield self.store.open_runs(job.id)
        earlier = frozenset(slot for slot, run in found if run.status in (RUNNING, FAILED)) - {me}
        return seen._replace(earlier=seen.earlier | earlier, version=job.version)

    def open_place(self, me: int, place: Place) -> Flow:
        """OverlapGate._open: `place` without the runs that are over, or whose start was taken back."""
        named = {place.holder, place.waiting} | place.earlier | place.displaced
        moments = tuple(sorted(named - {None, me}))
        del named
        closed: frozenset[int] = frozenset()
        while moments:
            moment, moments = moments[0], moments[1:]
            run = yield self.store.get_run(moment)
            if not self.is_open(run):
                closed |= {moment}
            del run
        return place._replace(
            holder=None if place.holder in closed else place.holder,
            waiting=None if place.waiting in closed else place.waiting,
            earlier=place.earlier - closed,
            displaced=place.displaced - closed,
        )

    def is_open(self, run: Run | None) -> bool:
        return run is not None and run.status not in OVER

    def replace(self, job: Job, replaced: tuple[int, ...]) -> Flow:
        """OverlapGate._replace: whether one of them ended by that at once."""
        is_free = False
        while replaced:
            moment, replaced = replaced[0], replaced[1:]
            run = yield self.store.get_run(moment)
            if not self.is_open(run):
                is_free = True
            elif not (run.status == RUNNING and run.cancel_requested):
                status = run.status
                del run
                found = yield from self.request_cancel(moment, Mark(job.revision + 1, REPLACED), status)
                is_free = is_free or found == CANCELLED
                del found, status
        return is_free

    # --- shared/flows/groups.py

    def enter_group(self, job: Job, slot: int, run: Run) -> Flow:
        """GroupGate.enter."""
        if not job.spec.limited:
            return PASSED
        tries = TRIES
        while tries:
            tries -= 1
            there = yield self.store.get_group()
            if there == ERROR:
                return ERROR
            limit, holders = there
            del there
            if limit is None:
                return PASSED
            before = next((one for one in holders if one.slot == slot), None)
            if len(holders) >= limit + (before is not None):
                del before, limit
                freed = yield from self.make_room(holders)
                del holders
                if not freed:
                    break
                continue
            del holders
            if before is not None and not (yield from self.is_mine_still(slot, run)):
                return LEASE_LOST
            if (yield self.store.take(limit, Holder(slot, run.number, NOBODY), before)):
                return PASSED
            del limit, before
        return Word(False, "group_limit")

    def is_mine_still(self, slot: int, run: Run) -> Flow:
        """Whether the place that the run has is an earlier attempt's, and not that of one which has taken it over."""
        return (yield self.store.get_own_run(slot, run)) is not None

    def make_room(self, holders: tuple[Holder, ...]) -> Flow:
        """GroupGate._make_room: whether an attempt was found that is over."""
        standings = yield self.store.standings(holders)
        freed = tuple((holder, how) for holder, how in standings if how != LIVE)
        found = bool(freed)
        del standings
        while freed:
            (holder, how), freed = freed[0], freed[1:]
            if how == EXPIRED and not (yield from self.fence(holder)):
                continue
            yield self.store.drop(holder)
        return found

    def fence(self, holder: Holder) -> Flow:
        """End an attempt as lost, that might still renew its lease; whether that is done."""
        return (yield self.store.lose(holder)) == "ok"

    def leave(self, limited: bool, slot: int, run: Run) -> Flow:
        """GroupGate.leave; what AWS refuses is left to whoever needs the place."""
        if limited:
            yield self.store.drop_own(slot, run)
