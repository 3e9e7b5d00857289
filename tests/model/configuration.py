"""What one search is of: a job or two, their occurrences, the actors, and a budget of faults."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.model import actors
from tests.model.actors import Actor
from tests.model.flows import Flows
from tests.model.search import Search, Verdict
from tests.model.store import Store
from tests.model.world import Budget, Job, Letter, Place, Run, Spec, Submission, World

TICK, EXECUTE = frozenset({"tick"}), frozenset({"execute"})


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """`ticks`, `executors`: how many at one time. `specs`: what is submitted, each once, when it likes.

    `due`: how many occurrences are due from the start; all of them, where the time of day changes nothing.
    `users`: what is said of the job, each once, when it likes: cancel, pause, resume, trigger; `updates`; `redrives`,
    how often. `far`: what these make due is left to a tick. `instant`: no time passes while they go on.
    `quick`: kinds of actors that nobody comes between (see actors); the races of others are searched here.
    `large`: only `python -m tests.model` searches it.
    """

    name: str
    occurrences: int = 2
    due: int = 2
    jobs: tuple[Job | None, ...] = (None,)
    owner: tuple[int, ...] | None = None
    runs: tuple[Run | None, ...] | None = None
    queue: tuple[Letter, ...] = ()
    specs: tuple[Submission, ...] = ()
    users: tuple[str, ...] = ()
    updates: tuple[Spec, ...] = ()
    redrives: int = 0
    far: bool = False
    instant: bool = False
    place: Place = field(default_factory=Place)
    limit: int | None = None
    ticks: int = 1
    executors: int = 1
    audit: bool = False
    per_claim: int = 2
    max_attempts: int = 2
    failures: bool = False
    quick: frozenset[str] = frozenset()
    budget: Budget = field(default_factory=Budget)
    large: bool = False

    def search(self, store: type[Store] = Store, flows: type[Flows] = Flows) -> Verdict:
        """Search it, with the protocol as it is or as a weakened variant has it."""
        return self.prepared(store, flows).run()

    def prepared(self, store: type[Store] = Store, flows: type[Flows] = Flows, *, reduced: bool = True) -> Search:
        """The search; not `reduced`, it takes several times as long and must find the same."""
        made = flows(store(self.max_attempts, self.failures), self.per_claim)
        made.asks, made.wakes, made.instant = self._asks, len(self.jobs) > 1, self.instant
        runs = self.runs or (None,) * self._slots
        start = World(
            runs=runs,
            called=tuple(tuple(range(1, run.number + 1)) if run else () for run in runs),
            jobs=self.jobs,
            owner=self.owner or (0,) * self._slots,
            moments=self.occurrences,
            queue=self.queue,
            now=self.due,
            place=self.place,
            limit=self.limit,
            budget=self.budget,
            begun=frozenset(job.by for job in self.jobs if job),
            accepted=frozenset((job.id, job.by) for job in self.jobs if job),
        )
        found = [replace(actor, quick=actor.kind in self.quick) for actor in self._actors(made)]
        return Search(start, found, made.without_void_messages, reduced)

    @property
    def _asks(self) -> bool:
        return "trigger" in self.users or self.redrives > 0

    @property
    def _slots(self) -> int:
        return self.occurrences + ("trigger" in self.users)

    def _actors(self, flows: Flows) -> Iterator[Actor]:
        yield from (actors.submitter(flows, wish) for wish in self.specs)
        yield from (self._user(flows, name) for name in self.users)
        yield from (actors.updater(flows, spec, not self.far) for spec in self.updates)
        yield from (actors.redriver(flows, number) for number in range(1, self.redrives + 1))
        yield from (actors.ticker(flows, number) for number in range(1, self.ticks + 1))
        alike = self.limit is None  # who has a place of a group is known by name
        yield from (actors.executor(flows, number, alike) for number in range(1, self.executors + 1))
        yield from [actors.auditor(flows)] if self.audit else []

    def _user(self, flows: Flows, name: str) -> Actor:
        match name:
            case "cancel":
                return actors.canceller(flows)
            case "pause":
                return actors.pauser(flows)
            case "resume":
                return actors.resumer(flows, not self.far)
            case "trigger":
                return actors.trigger(flows, self.occurrences)
        raise ValueError(f"nobody says {name!r}")
