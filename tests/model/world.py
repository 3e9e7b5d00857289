"""What the model's store, queue and users hold: jobs, their occurrences, and who is at what. It changes nothing.

Time is `now`, the number of occurrences that have become due: occurrence k is due when `now > k`. Occurrences from
`moments` on are the moments of triggers, which are due at once. Leases and visibilities have no length: they end when
their holder has ended, died, or been stalled for longer than they last.
"""

from typing import NamedTuple

NOBODY = -1
SCHEDULED, PAUSED, CANCELLED = "scheduled", "paused", "cancelled"
ENQUEUED, RUNNING, FAILED = "enqueued", "running", "failed"
SUCCEEDED, DEAD_LETTERED, SKIPPED = "succeeded", "dead_lettered", "skipped"
OVER = frozenset({SUCCEEDED, DEAD_LETTERED, CANCELLED, SKIPPED})
OPEN, LOST = "open", "lost"  # of an attempt, besides failed and succeeded
ALL, LATEST, SKIP = "all", "latest", "skip"  # catch_up
CATCH_UP, OVERLAP, REPLACED, PARENT_FAILED = "catch_up", "overlap", "replaced", "parent_failed"  # reasons
RESCHEDULED = "rescheduled"
REASONS = frozenset({CATCH_UP, OVERLAP, REPLACED, PARENT_FAILED, PAUSED})  # why one of a live job may not have run


class Spec(NamedTuple):
    """model.job.JobSpec. `policy` stands for what voids nothing; `limited`: it is of the group with the limit."""

    slots: tuple[int, ...]
    one_off: bool = False
    max_runs: int | None = None
    catch_up: str = ALL
    policy: str = ""
    overlap: str = "allow"
    limited: bool = False
    parents: tuple[int, ...] = ()
    on_parent_failure: str = "skip"

    @property
    def run_at(self) -> int | None:
        return self.slots[0] if self.one_off else None


class Submission(NamedTuple):
    """Somebody's wish for a job. `near`: its first occurrence lies within the horizon. `job`: its id."""

    by: str
    spec: Spec
    near: bool = True
    job: int = 0


class Job(NamedTuple):
    """model.job.Job."""

    by: str  # the submit that it came from, and so its created_at
    spec: Spec
    status: str
    due: int | None
    claimed: int | None  # claimed_until
    revision: int
    changed: int  # changed_at: the occurrences from this one on count
    version: int = 1
    fence: int = 0
    count: int = 0  # runs_claimed
    has_children: bool = False
    id: int = 0
    created: int = 0

    @property
    def slots(self) -> tuple[int, ...]:
        return self.spec.slots


class Asked(NamedTuple):
    """requested_at: whose wish a run is, and which submits were created before it."""

    by: str
    after: frozenset[str]


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
    asked: Asked | None = None
    earlier: int = 0  # attempts made before its last redrive
    reason: str = ""  # one of REASONS; of a mark, too
    until: int = -1  # the last occurrence that a skipped one stands for
    begun: frozenset[str] = frozenset()  # the submits that had begun when its latest attempt did

    @property
    def cancel_requested(self) -> bool:
        return self.cancelled_at > self.revision

    @property
    def of_round(self) -> int:
        return self.number - self.earlier


class Mark(NamedTuple):
    """What ends a run that waits, and the attempts of one that runs: since the job's `revision`, for `reason`."""

    revision: int
    reason: str = ""


class Message(NamedTuple):
    """`until` not -1: the occurrences up to it are to be recorded as skipped. `woken`: sent since a parent is over."""

    slot: int
    revision: int
    until: int = -1
    job: int = 0
    woken: bool = False


class Letter(NamedTuple):
    """A message in the queue; hidden while somebody holds it."""

    message: Message
    holder: int = NOBODY


class Page(NamedTuple):
    """A journal page. It is old, and recovered, once nobody is its writer."""

    name: int
    writer: int
    messages: tuple[Message, ...]


class Place(NamedTuple):
    """store.overlaps.PlaceRecord, without what it counts."""

    holder: int | None = None
    waiting: int | None = None
    earlier: frozenset[int] = frozenset()
    displaced: frozenset[int] = frozenset()
    version: int = 0


class Holder(NamedTuple):
    """rules.group_limits.Holder: an attempt that has a place of its group."""

    slot: int
    number: int
    worker: int


class Answer(NamedTuple):
    """That the job of submit `by` is cancelled; `running`: the runs named as still going on, with their attempt."""

    by: str
    running: tuple[tuple[int, int], ...]


class Budget(NamedTuple):
    """How many faults of each kind may still strike."""

    crashes: int = 0
    lost_answers: int = 0  # the call took effect, botocore makes it again
    errors: int = 0  # AWS refuses a call that an executor makes around its attempt
    stalls: int = 0  # an executor stands still for longer than its lease
    late_ticks: int = 0  # a tick or a call stands still for longer than 90 s, the age at which its page is recovered
    duplicates: int = 0  # SQS delivers a message twice
    purges: int = 0  # a message vanishes from the queue
    early_audits: int = 0  # an audit at any moment; else it comes when nothing else happens


class World(NamedTuple):
    runs: tuple[Run | None, ...]
    called: tuple[tuple[int, ...], ...]  # for each occurrence, the attempt numbers that its handler was called with
    jobs: tuple[Job | None, ...] = (None,)
    owner: tuple[int, ...] = ()  # for each occurrence, the id of its job
    moments: int = 0  # how many occurrences time brings
    now: int = 0
    journal: tuple[Page, ...] = ()
    known: tuple[tuple[int, int], ...] = ()  # (actor, name) of pages: no other gets a name that somebody knows
    queue: tuple[Letter, ...] = ()
    inside: tuple[tuple[int, int], ...] = ()  # (actor, occurrence) of the handlers at work under a lease
    dead_letters: frozenset[int] = frozenset()
    epochs: tuple[tuple[int, int], ...] = ()  # (actor, epoch) of the ticks at work
    place: Place = Place()
    fresh: frozenset[int] = frozenset()  # the actors since whose read of the place nobody has written it
    limit: int | None = None  # max_running of the group
    holders: frozenset[Holder] = frozenset()
    begun: frozenset[str] = frozenset()  # the submits that have begun
    busy: frozenset[int] = frozenset()  # the users at work whose calls take no time
    owed: frozenset[int] = frozenset()  # occurrences that came due while their job was live: each leaves a record
    cancelled: Answer | None = None
    accepted: frozenset[tuple[int, str]] = frozenset()  # (id, submit) that were answered 201
    changes: frozenset[Spec] = frozenset()  # that were answered 200
    promised: frozenset[tuple[int, int, str]] = frozenset()  # granted runs: occurrence, after which attempt, whose job
    ended: frozenset[str] = frozenset()  # the submits whose jobs were cancelled
    budget: Budget = Budget()


def with_run(world: World, slot: int, run: Run | None) -> World:
    return world._replace(runs=(*world.runs[:slot], run, *world.runs[slot + 1 :]))


def with_job(world: World, job: Job) -> World:
    return world._replace(jobs=(*world.jobs[: job.id], job, *world.jobs[job.id + 1 :]))


def is_due(world: World, slot: int) -> bool:
    return slot < world.now or slot >= world.moments


def is_covered(world: World, slot: int) -> bool:
    """Whether there is a record of the occurrence: its run, or one that was skipped and stands for a span."""
    own = world.owner[slot]
    return any(run and world.owner[at] == own and at <= slot <= max(at, run.until) for at, run in enumerate(world.runs))


def spent(world: World, fault: str) -> World:
    """`world` with one `fault` less to come."""
    return world._replace(budget=world.budget._replace(**{fault: getattr(world.budget, fault) - 1}))


def ranked(world: World) -> World:
    """Only the order of fences matters, so they are numbered anew: worlds that differ in nothing else are one."""
    fences = {job.fence for job in world.jobs if job}
    ranks = {epoch: rank for rank, epoch in enumerate(sorted({0, *fences, *(epoch for _, epoch in world.epochs)}))}
    jobs = tuple(job and job._replace(fence=ranks[job.fence]) for job in world.jobs)
    return world._replace(jobs=jobs, epochs=tuple((actor, ranks[epoch]) for actor, epoch in world.epochs))


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
            fresh=world.fresh - {actor},
            busy=world.busy - {actor},
            holders=frozenset(h._replace(worker=NOBODY) if h.worker == actor else h for h in world.holders),
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
        fresh=frozenset(map(name, world.fresh)),
        holders=frozenset(holder._replace(worker=name(holder.worker)) for holder in world.holders),
    )
