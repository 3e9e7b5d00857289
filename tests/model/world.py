"""What the model's store, queue and users hold: one job id, its occurrences, and who is at what. It changes nothing.

Time is `now`, the number of occurrences that have become due: occurrence k is due when `now > k`. Leases and
visibilities have no length: they end when their holder has ended, died, or been stalled for longer than they last.
"""

from typing import NamedTuple

NOBODY = -1
SCHEDULED, CANCELLED = "scheduled", "cancelled"
RUNNING, FAILED, SUCCEEDED, DEAD_LETTERED, SKIPPED = "running", "failed", "succeeded", "dead_lettered", "skipped"
OVER = frozenset({SUCCEEDED, DEAD_LETTERED, CANCELLED, SKIPPED})
OPEN, LOST = "open", "lost"  # of an attempt, besides failed and succeeded


class Spec(NamedTuple):
    """A submission. `near`: its first occurrence lies within the horizon."""

    by: str
    slots: tuple[int, ...]
    one_off: bool = False
    near: bool = True


class Job(NamedTuple):
    """model.job.Job. `version` moves with `revision` here (only submit and cancel change a job), so it is left out."""

    by: str  # the submit that it came from: no attribute of the real one, only for the properties
    slots: tuple[int, ...]
    one_off: bool
    status: str
    due: int | None
    claimed: int | None  # claimed_until
    revision: int
    changed: int  # changed_at: `now` at the last change of when
    fence: int = 0


class Run(NamedTuple):
    """model.run.Run. `worker`: the actor whose attempt it is; `lease`: it has not run out.

    `cancelled_at`: the revision of the cancelled job that it was marked for; a later job's start makes that void.
    """

    status: str
    revision: int
    number: int  # the latest attempt's
    attempts: tuple[str, ...] = ()  # how each ended
    worker: int = NOBODY
    lease: bool = False
    cancelled_at: int = 0

    @property
    def cancel_requested(self) -> bool:
        return self.cancelled_at > self.revision


class Message(NamedTuple):
    slot: int
    revision: int


class Letter(NamedTuple):
    """A message in the queue; hidden while somebody holds it."""

    message: Message
    holder: int = NOBODY


class Page(NamedTuple):
    """A journal page. It is old, and recovered, once nobody is its writer."""

    name: int
    writer: int
    messages: tuple[Message, ...]


class Answer(NamedTuple):
    """That the job of submit `by` is cancelled; `running`: the runs named as still going on, with their attempt."""

    by: str
    running: tuple[tuple[int, int], ...]


class Budget(NamedTuple):
    """How many faults of each kind may still strike."""

    crashes: int = 0
    lost_answers: int = 0  # the call took effect, botocore makes it again
    errors: int = 0  # AWS refuses the executor's read of the job
    stalls: int = 0  # an executor stands still for longer than its lease
    late_ticks: int = 0  # a tick stands still for longer than 90 s, the age at which its page is recovered
    duplicates: int = 0  # SQS delivers a message twice
    purges: int = 0  # a message vanishes from the queue
    early_audits: int = 0  # an audit at any moment; else it comes when nothing else happens


class World(NamedTuple):
    runs: tuple[Run | None, ...]
    called: tuple[tuple[int, ...], ...]  # for each occurrence, the attempt numbers that its handler was called with
    job: Job | None = None
    now: int = 0
    journal: tuple[Page, ...] = ()
    known: tuple[tuple[int, int], ...] = ()  # (actor, name) of pages: no other gets a name that somebody knows
    queue: tuple[Letter, ...] = ()
    inside: tuple[tuple[int, int], ...] = ()  # (actor, occurrence) of the handlers at work under a lease
    dead_letters: frozenset[int] = frozenset()
    epochs: tuple[tuple[int, int], ...] = ()  # (actor, epoch) of the ticks at work
    cancelled: Answer | None = None
    accepted: frozenset[str] = frozenset()  # the submits that were answered 201
    budget: Budget = Budget()


def with_run(world: World, slot: int, run: Run | None) -> World:
    return world._replace(runs=(*world.runs[:slot], run, *world.runs[slot + 1 :]))


def spent(world: World, fault: str) -> World:
    """`world` with one `fault` less to come."""
    return world._replace(budget=world.budget._replace(**{fault: getattr(world.budget, fault) - 1}))


def ranked(world: World) -> World:
    """Only the order of fences matters, so they are numbered anew: worlds that differ in nothing else are one."""
    job_fence = world.job.fence if world.job else 0
    ranks = {epoch: rank for rank, epoch in enumerate(sorted({0, job_fence, *(e for _, e in world.epochs)}))}
    job = world.job._replace(fence=ranks[job_fence]) if world.job else None
    return world._replace(job=job, epochs=tuple((actor, ranks[epoch]) for actor, epoch in world.epochs))


def without(world: World, actor: int) -> World:
    """After `actor` has ended or died: its lease and its visibilities run out, its page grows old."""
    return ranked(
        world._replace(
            runs=tuple(r._replace(worker=NOBODY, lease=False) if r and r.worker == actor else r for r in world.runs),
            journal=tuple(p._replace(writer=NOBODY) if p.writer == actor else p for p in world.journal),
            known=tuple(pair for pair in world.known if pair[0] != actor),
            queue=visible_again(world.queue, actor),
            inside=tuple(pair for pair in world.inside if pair[0] != actor),
            epochs=tuple(pair for pair in world.epochs if pair[0] != actor),
        )
    )


def visible_again(queue: tuple[Letter, ...], holder: int) -> tuple[Letter, ...]:
    return tuple(sorted(letter._replace(holder=NOBODY) if letter.holder == holder else letter for letter in queue))


def swapped(world: World, one: int, two: int) -> World:
    """The same world with two actors of one kind in each other's place."""
    other = {one: two, two: one}

    def name(actor: int) -> int:
        return other.get(actor, actor)

    return world._replace(
        runs=tuple(run and run._replace(worker=name(run.worker)) for run in world.runs),
        journal=tuple(page._replace(writer=name(page.writer)) for page in world.journal),
        known=tuple(sorted((name(actor), page) for actor, page in world.known)),
        queue=tuple(sorted(letter._replace(holder=name(letter.holder)) for letter in world.queue)),
        inside=tuple(sorted((name(actor), slot) for actor, slot in world.inside)),
        epochs=tuple(sorted((name(actor), epoch) for actor, epoch in world.epochs)),
    )
