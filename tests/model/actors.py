"""Who may begin what, and what may go wrong. It knows no order of calls (flows does)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.model.flows import Flow, Flows
from tests.model.flows_claims import abandoned, claimed_slots
from tests.model.world import (
    DEAD_LETTERED,
    NOBODY,
    PAUSED,
    SCHEDULED,
    Asked,
    Job,
    Message,
    Spec,
    Submission,
    World,
    is_covered,
    is_due,
    ranked,
    spent,
    visible_again,
    without,
)


class Begun(NamedTuple):
    """An actor has begun: how that is told, the world then, and the flow it is in."""

    told: str
    world: World
    flow: Callable[[], Flow]


@dataclass(frozen=True)
class Actor:
    """One process. Actors of one `kind` are interchangeable, if they are `alike`.

    `once`: it begins once, when it likes, and never again. `last_resort`: it begins only when nothing else happens.
    `in_one`: its beginning and its first call are one step: what it took by beginning matters to nobody before that.
    `quick`: the others do nothing between two of its calls (it may still die there, or make one twice).
    """

    name: str
    kind: str
    begin: Callable[[World, int], list[Begun]]
    once: bool = False
    last_resort: bool = False
    in_one: bool = False
    quick: bool = False
    alike: bool = True


def submitter(flows: Flows, wish: Submission) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        now = world.now
        begun = world._replace(begun=world.begun | {wish.by}) if flows.asks else world
        return [Begun("begins", begun, lambda: flows.submit(wish, now))]

    return Actor(f"submit {wish.by}", f"submit {wish.by}", begin, once=True)


def canceller(flows: Flows) -> Actor:
    return _user(flows, "cancel", lambda world: lambda: flows.cancel(world.now))


def pauser(flows: Flows) -> Actor:
    return _user(flows, "pause", lambda world: lambda: flows.pause(world.now), while_=(SCHEDULED,))


def resumer(flows: Flows, near: bool = True) -> Actor:
    return _user(flows, "resume", lambda world: lambda: flows.resume(near, world.now), while_=(PAUSED,))


def updater(flows: Flows, spec: Spec, near: bool = True) -> Actor:
    what = f"update to {spec.slots}" if spec.slots else "update of policies"
    return _user(flows, what, lambda world: lambda: flows.update(spec, near, world.now))


def _user(
    flows: Flows,
    name: str,
    flow: Callable[[World], Callable[[], Flow]],
    while_: tuple[str, ...] = (SCHEDULED, PAUSED),
) -> Actor:
    """A user's call, at any moment at which it may change something."""

    def begin(world: World, me: int) -> list[Begun]:
        job = world.jobs[0]
        if name != "cancel" and (job is None or job.status not in while_):
            return []
        at_work = world._replace(busy=world.busy | {me}) if flows.instant else world
        return [Begun(f"begins at {world.now}", at_work, flow(world))]

    return Actor(name, name, begin, once=True)


def trigger(flows: Flows, slot: int) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        asked = Asked("trigger", world.begun)
        return [Begun("begins", world, lambda: flows.trigger(slot, asked))]

    return Actor("trigger", "trigger", begin, once=True)


def redriver(flows: Flows, number: int) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        asked = Asked(f"redrive {number}", world.begun)
        slots = tuple(slot for slot, run in enumerate(world.runs) if run and run.status == DEAD_LETTERED)
        return [Begun("begins", world, lambda: flows.redrive(slots, asked))] if slots else []

    return Actor(f"redrive {number}", f"redrive {number}", begin, once=True)


def ticker(flows: Flows, number: int) -> Actor:
    """A tick comes whenever there is something for it: that it may find nothing changes nothing.

    It takes the shard's lease whoever has it: no correctness may rest on the lease.
    """

    def begin(world: World, me: int) -> list[Begun]:
        job = world.jobs[0]
        waits = job and job.status == SCHEDULED and job.due is not None
        if not waits and not any(page.writer == NOBODY for page in world.journal):
            return []
        epoch = max((epoch for _, epoch in world.epochs), default=0)
        epoch = max(epoch, job.fence if job else 0) + 1
        taken = ranked(world._replace(epochs=tuple(sorted((*world.epochs, (me, epoch))))))
        return [Begun("shards.take", taken, flows.tick)]

    return Actor(f"tick {number}", "tick", begin)


def executor(flows: Flows, number: int, alike: bool = True) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        return [_received(world, me, message) for message in dict.fromkeys(_visible(world))]

    def _received(world: World, me: int, message: Message) -> Begun:
        letters = list(world.queue)
        place = next(k for k, one in enumerate(letters) if one.message == message and one.holder == NOBODY)
        letters[place] = letters[place]._replace(holder=me)
        told = f"receives {message.slot}@r{message.revision}" + (" to skip" if message.until >= 0 else "")
        return Begun(told, world._replace(queue=tuple(sorted(letters))), lambda: flows.execute(message))

    return Actor(f"execute {number}", "execute", begin, in_one=True, alike=alike)


def _visible(world: World) -> Iterator[Message]:
    return (one.message for one in world.queue if one.holder == NOBODY and is_due(world, one.message.slot))


def auditor(flows: Flows) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        job, now, pages = world.jobs[0], world.now, tuple(page for page in world.journal if page.writer == NOBODY)
        left = abandoned(world)
        overdue = job is not None and job.status == SCHEDULED and job.due is not None and job.due < now
        unstarted = [slot for slot in claimed_slots(job) if not is_covered(world, slot)] if job else []
        if not (pages or left or overdue or unstarted):
            return []
        known = tuple(sorted({*world.known, *((me, page.name) for page in pages)}))
        scanned = world._replace(known=known)
        return [Begun("table.scan", scanned, lambda: flows.audit(job, now, left, pages))]

    return Actor("audit", "audit", begin, last_resort=True)


def time_passes(world: World) -> list[tuple[str, World]]:
    if world.now >= world.moments or world.busy:
        return []
    due, job = world.now, world.jobs[world.owner[world.now]]
    owed = world.owed | {due} if job and is_owed(job, due) else world.owed
    return [(f"-- occurrence {due} becomes due", world._replace(now=due + 1, owed=owed))]


def is_owed(job: Job, slot: int) -> bool:
    """Whether the occurrence, which becomes due now, is one that the job is to bring."""
    is_left = job.due is not None or (job.claimed is not None and slot <= job.claimed)
    return job.status == SCHEDULED and slot in job.slots and is_left


def faults_of_aws(world: World) -> list[tuple[str, World]]:
    """What the queue may do by itself."""
    found: list[tuple[str, World]] = []
    if world.budget.duplicates:
        found += [
            (f"!! {one.message.slot}@r{one.message.revision} is delivered twice", spent(twice, "duplicates"))
            for one in dict.fromkeys(world.queue)
            for twice in [world._replace(queue=tuple(sorted((*world.queue, one._replace(holder=NOBODY)))))]
        ]
    if world.budget.purges:
        left = world._replace(queue=())
        found += [("!! the queue is purged", spent(left, "purges"))] if world.queue else []
    return found


def faults_of(kind: str, world: World, me: int) -> list[tuple[str, World]]:
    """What may befall an actor at work that lives on."""
    if kind == "execute" and world.budget.stalls:
        runs = tuple(run._replace(lease=False) if run and run.worker == me else run for run in world.runs)
        inside = tuple(pair for pair in world.inside if pair[0] != me)
        stalled = world._replace(runs=runs, inside=inside, queue=visible_again(world.queue, me))
        return [(" stands still until its lease is over", spent(stalled, "stalls"))] if stalled != world else []
    mine = [page for page in world.journal if page.writer == me]
    if kind == "tick" and world.budget.late_ticks and mine:
        journal = tuple(page._replace(writer=NOBODY) if page.writer == me else page for page in world.journal)
        known = tuple(sorted({*world.known, (me, mine[0].name)}))  # its name is not given to another meanwhile
        late = world._replace(journal=journal, known=known)
        return [(" stands still for more than 90 s", spent(late, "late_ticks"))]
    return []


def died(world: World, me: int) -> World:
    return spent(without(world, me), "crashes")
