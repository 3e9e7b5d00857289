"""Who may begin what, what may go wrong, and what has to hold at the end. It knows no order of calls (flows does)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.model.flows import Flow, Flows, claimed_slots
from tests.model.world import (
    CANCELLED,
    DEAD_LETTERED,
    FAILED,
    NOBODY,
    OVER,
    RUNNING,
    SCHEDULED,
    SUCCEEDED,
    Message,
    Spec,
    World,
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
    """One process. Actors of one `kind` are interchangeable.

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


def submitter(flows: Flows, spec: Spec) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        now = world.now
        return [Begun("begins", world, lambda: flows.submit(spec, now))]

    return Actor(f"submit {spec.by}", f"submit {spec.by}", begin, once=True)


def canceller(flows: Flows) -> Actor:
    return Actor("cancel", "cancel", lambda world, me: [Begun("begins", world, flows.cancel)], once=True)


def ticker(flows: Flows, number: int) -> Actor:
    """A tick comes whenever there is something for it: that it may find nothing changes nothing.

    It takes the shard's lease whoever has it: no correctness may rest on the lease.
    """

    def begin(world: World, me: int) -> list[Begun]:
        waits = world.job and world.job.status == SCHEDULED and world.job.due is not None
        if not waits and not any(page.writer == NOBODY for page in world.journal):
            return []
        epoch = max((epoch for _, epoch in world.epochs), default=0)
        epoch = max(epoch, world.job.fence if world.job else 0) + 1
        taken = ranked(world._replace(epochs=tuple(sorted((*world.epochs, (me, epoch))))))
        return [Begun("shards.take", taken, flows.tick)]

    return Actor(f"tick {number}", "tick", begin)


def executor(flows: Flows, number: int) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        return [_received(world, me, message) for message in dict.fromkeys(_visible(world))]

    def _received(world: World, me: int, message: Message) -> Begun:
        letters = list(world.queue)
        place = next(k for k, one in enumerate(letters) if one.message == message and one.holder == NOBODY)
        letters[place] = letters[place]._replace(holder=me)
        told = f"receives {message.slot}@r{message.revision}"
        return Begun(told, world._replace(queue=tuple(sorted(letters))), lambda: flows.execute(message))

    return Actor(f"execute {number}", "execute", begin, in_one=True)


def _visible(world: World) -> Iterator[Message]:
    return (letter.message for letter in world.queue if letter.holder == NOBODY and letter.message.slot < world.now)


def auditor(flows: Flows) -> Actor:
    def begin(world: World, me: int) -> list[Begun]:
        job, pages = world.job, tuple(page for page in world.journal if page.writer == NOBODY)
        abandoned = tuple(
            Message(slot, run.revision)
            for slot, run in enumerate(world.runs)
            if run and (run.status == FAILED or (run.status == RUNNING and not run.lease))
        )
        overdue = job is not None and job.status == SCHEDULED and job.due is not None and job.due < world.now
        unstarted = [slot for slot in claimed_slots(job) if not world.runs[slot]] if job else []
        if not (pages or abandoned or overdue or unstarted):
            return []
        known = tuple(sorted({*world.known, *((me, page.name) for page in pages)}))
        scanned = world._replace(known=known)
        return [Begun("table.scan", scanned, lambda: flows.audit(job, abandoned, pages))]

    return Actor("audit", "audit", begin, last_resort=True)


def time_passes(world: World) -> list[tuple[str, World]]:
    if world.now < len(world.runs):
        return [(f"-- occurrence {world.now} becomes due", world._replace(now=world.now + 1))]
    return []


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


def unfinished(world: World) -> str | None:
    """What is wrong when nothing more will happen; None if nothing is."""
    if world.journal:
        return "I6: the journal is not drained"
    job = world.job
    if job is None:
        return "a job that was accepted is not there" if world.accepted else None
    for slot, run in enumerate(world.runs):
        if run and run.status not in OVER:
            return f"run {slot} is {run.status} for ever"
        if job.status == CANCELLED or slot not in job.slots or not (job.one_off or slot >= job.changed):
            continue
        if run is None:
            return f"I1: occurrence {slot} is lost"
        if run.status not in (SUCCEEDED, DEAD_LETTERED) and job.by in world.accepted:
            return f"I1: occurrence {slot} of a live job ended as {run.status}"
    if job.status == SCHEDULED and job.due is not None:
        return f"I8: occurrence {job.due} is left in the index"
    return None
