"""The calls of shared/store/jobs.py and journal.py, with their conditions. It knows no flow's order."""

from typing import Any

from tests.model.calls import Claim, Due, Outcomes, call
from tests.model.world import NOBODY, PAUSED, SCHEDULED, Job, Message, Page, World, is_due, ranked, with_job

WON, LOST_CLAIM, OVERTAKEN = "won", "lost", "overtaken"
WRITTEN, NOT_WRITTEN, UNSURE = "written", "not written", "not written, or overtaken since"


class JobCalls:
    """The jobs and the journal."""

    @call("jobs.get")
    def get_job(self, world: World, me: int, job: int = 0) -> Outcomes:
        return [(world, world.jobs[job])]

    @call("jobs.get", may_fail=True)
    def get_job_or_error(self, world: World, me: int, job: int) -> Outcomes:
        return [(world, world.jobs[job])]

    @call("jobs.get_many")
    def get_jobs(self, world: World, me: int) -> Outcomes:
        return [(world, world.jobs)]

    @call("jobs.get_many", may_fail=True)
    def get_jobs_or_error(self, world: World, me: int) -> Outcomes:
        return [(world, world.jobs)]

    @call("children.of")
    def children(self, world: World, me: int, parent: int) -> Outcomes:
        """Messages for those that are claimed and may wait for `parent`."""
        waiting = [job for job in world.jobs if job and parent in job.spec.parents and is_due(world, job.slots[0])]
        ready = [job for job in waiting if job.status == SCHEDULED and job.due is None]
        found = (Message(job.slots[0], job.revision, job=job.id, woken=True) for job in ready)
        return [(world, tuple(found))]

    @call("jobs.due")
    def due(self, world: World, me: int) -> Outcomes:
        job = world.jobs[0]
        shown = Due(job, world.now) if job and job.status == SCHEDULED and job.due is not None else None
        return [(world, shown)]

    @call("jobs.claim", writes=True)
    def claim(self, world: World, me: int, claim: Claim, as_tick: bool) -> Outcomes:
        job = world.jobs[claim.job]
        epochs = dict(world.epochs)
        fence = epochs[me] if as_tick else max(epochs.values(), default=job.fence if job else 0)
        left = fence if as_tick else 0
        if job and self.may_be_claimed(job, claim, fence):
            made = job._replace(due=claim.then, claimed=claim.until, count=claim.count, fence=left)
            return [(ranked(with_job(world, made)), WON)]
        if job and self.is_made(job, claim, left):
            return [(world, WON)]
        return [(world, OVERTAKEN if job and self.is_overtaken(job, claim, left) else LOST_CLAIM)]

    def may_be_claimed(self, job: Job, claim: Claim, fence: int) -> bool:
        same = job.status == SCHEDULED and job.due == claim.due and job.revision == claim.revision
        return same and job.fence <= fence

    def is_made(self, job: Job, claim: Claim, fence: int) -> bool:
        """A first try took effect, and its answer was lost."""
        same = job.status == SCHEDULED and job.fence == fence and job.revision == claim.revision
        return same and job.claimed == claim.until and job.due == claim.then

    def is_overtaken(self, job: Job, claim: Claim, fence: int) -> bool:
        """Whether a first try took effect cannot be told: a newer tick has claimed further, or a user changed it."""
        if job.revision > claim.revision:
            return True
        same = job.status == SCHEDULED and job.revision == claim.revision
        return same and job.fence > fence and job.claimed is not None and job.claimed >= claim.until

    @call("jobs.create", writes=True)
    def create(self, world: World, me: int, job: Job) -> Outcomes:
        return self._put(world, job, world.jobs[job.id] is None)

    @call("jobs.replace_finished", writes=True)
    def replace_finished(self, world: World, me: int, job: Job, seen: Job) -> Outcomes:
        there = world.jobs[job.id]
        return self._put(world, job, there is not None and self.is_unchanged(there, seen))

    def _put(self, world: World, job: Job, free: bool) -> Outcomes:
        return [(ranked(_forgiven(with_job(world, job), job)), True)] if free else [(world, False)]

    def is_same(self, job: Job, there: Job) -> bool:
        if there.by != job.by or there.revision < job.revision:
            return False
        return there.spec == job.spec or there.version > job.version

    @call("jobs.change", writes=True)
    def change_job(self, world: World, me: int, seen: Job, job: Job, when: bool) -> Outcomes:
        """Jobs.change: `job` in the place of `seen`; what claims write is left alone unless it is a change of when."""
        there = world.jobs[job.id]
        if there and self.is_unchanged(there, seen) and (not when or self.is_not_claimed(there, seen)):
            made = job
            if not when:
                made = job._replace(due=there.due, claimed=there.claimed, count=there.count)
            made = made._replace(fence=there.fence, has_children=there.has_children)
            world = world if made.spec.slots == there.spec.slots else _owed_no_more(world, there, made)
            if made.status not in (SCHEDULED, PAUSED):
                world = _forgiven(world, made)._replace(ended=world.ended | {made.by})
            return [(with_job(world, made), WRITTEN)]
        if there and self.is_change(there, job):
            return [(world, WRITTEN)]
        return [(world, NOT_WRITTEN if there is None or there.version < job.version else self.unsure())]

    def is_unchanged(self, there: Job, seen: Job) -> bool:
        return (there.version, there.revision) == (seen.version, seen.revision)

    def is_not_claimed(self, there: Job, seen: Job) -> bool:
        return there.due == seen.due

    def is_change(self, there: Job, job: Job) -> bool:
        """A first try took effect, and its answer was lost; a claim may have followed."""
        claims: dict[str, Any] = {"due": there.due, "claimed": there.claimed, "count": there.count}
        return there == job._replace(**claims, fence=there.fence, has_children=there.has_children)

    def unsure(self) -> str:
        """Another change followed: whether this one was made before it is not to see."""
        return UNSURE

    # --- shared/store/journal.py

    @call("journal.write", writes=True, at_once=True)
    def write_page(self, world: World, me: int, messages: tuple[Message, ...]) -> Outcomes:
        for page in world.journal:
            if page.writer == me:  # the same put again
                return [(world, page.name)]
        used = {page.name for page in world.journal} | {name for _, name in world.known}
        page = Page(min(set(range(len(used) + 1)) - used), me, messages)
        return [(world._replace(journal=tuple(sorted((*world.journal, page)))), page.name)]

    @call("journal.settle")
    def settle(self, world: World, me: int, name: int) -> Outcomes:
        """Made twice it does the same, for no page gets the name of another."""
        journal = tuple(page for page in world.journal if page.name != name)
        return [(world._replace(journal=journal, known=tuple(k for k in world.known if k != (me, name))), None)]

    @call("journal.old_pages")
    def old_page(self, world: World, me: int) -> Outcomes:
        for page in world.journal:
            if page.writer == NOBODY and (me, page.name) not in world.known:
                known = tuple(sorted((*world.known, (me, page.name))))
                return [(world._replace(known=known), page)]
        return [(world, None)]


def _forgiven(world: World, job: Job) -> World:
    """Nothing is owed any more of a job that is cancelled, or was there before this one."""
    return world._replace(owed=frozenset(slot for slot in world.owed if world.owner[slot] != job.id))


def _owed_no_more(world: World, there: Job, made: Job) -> World:
    """A new schedule counts from its change: what a pause had left to a resume is not made up for."""

    def is_owed(slot: int) -> bool:
        is_left = there.status == PAUSED and (slot >= there.changed or slot == there.spec.run_at)
        return slot < made.changed and not is_left

    return world._replace(owed=frozenset(filter(is_owed, world.owed)))
