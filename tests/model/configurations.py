"""What is searched: one job id, its occurrences, its actors, and a budget of faults. Each is searched to the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.actors import Actor, auditor, canceller, executor, submitter, ticker
from tests.model.flows import Flows
from tests.model.search import Search, Verdict
from tests.model.store import Store
from tests.model.world import SCHEDULED, Budget, Job, Letter, Message, Spec, World

WAITING = Job("A", (0, 1), one_off=False, status=SCHEDULED, due=0, claimed=None, revision=1, changed=0)
ONCE = Job("A", (0,), one_off=True, status=SCHEDULED, due=None, claimed=0, revision=1, changed=0)
SENT = (Letter(Message(0, 1)),)
TICK, EXECUTE = frozenset({"tick"}), frozenset({"execute"})


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """`ticks`, `executors`: how many at one time. `specs`: what is submitted, each once, when it likes.

    `due`: how many occurrences are due from the start; all of them, where the time of day changes nothing.
    `quick`: kinds of actors that nobody comes between (see actors); the races of others are searched here.
    """

    name: str
    occurrences: int = 2
    due: int = 2
    job: Job | None = None
    queue: tuple[Letter, ...] = ()
    specs: tuple[Spec, ...] = ()
    cancel: bool = False
    ticks: int = 1
    executors: int = 1
    audit: bool = False
    per_claim: int = 2
    failures: bool = False
    quick: frozenset[str] = frozenset()
    budget: Budget = field(default_factory=Budget)

    def search(self, store: type[Store] = Store, flows: type[Flows] = Flows) -> Verdict:
        """Search it, with the protocol as it is or as a weakened variant has it."""
        return self.prepared(store, flows).run()

    def prepared(self, store: type[Store] = Store, flows: type[Flows] = Flows, *, reduced: bool = True) -> Search:
        """The search; not `reduced`, it takes several times as long and must find the same."""
        made = flows(store(failures=self.failures), self.per_claim)
        start = World(
            runs=(None,) * self.occurrences,
            called=((),) * self.occurrences,
            job=self.job,
            queue=self.queue,
            now=self.due,
            budget=self.budget,
            accepted=frozenset({self.job.by} if self.job else ()),
        )
        return Search(start, self._actors(made), made.without_void_messages, reduced)

    def _actors(self, flows: Flows) -> Sequence[Actor]:
        actors = [submitter(flows, spec) for spec in self.specs]
        actors += [canceller(flows)] if self.cancel else []
        actors += [ticker(flows, number) for number in range(1, self.ticks + 1)]
        actors += [executor(flows, number) for number in range(1, self.executors + 1)]
        actors += [auditor(flows)] if self.audit else []
        return [replace(actor, quick=actor.kind in self.quick) for actor in actors]


def _ticks(name: str, **more: Any) -> Configuration:
    """Two ticks beside each other, one perhaps of an earlier minute and late."""
    return Configuration(name=f"two ticks: {name}", job=WAITING, ticks=2, quick=EXECUTE, **more)


def _executors(name: str, **more: Any) -> Configuration:
    """Two executors, with two attempts for each occurrence."""
    return Configuration(name=f"two executors: {name}", job=WAITING, executors=2, failures=True, quick=TICK, **more)


def _cancel(name: str, **more: Any) -> Configuration:
    """A cancel at any moment, beside two executors if nothing else is said."""
    given: dict[str, Any] = {"executors": 2, "quick": TICK}
    return Configuration(name=f"cancel: {name}", job=WAITING, due=0, cancel=True, **(given | more))


def _audit(name: str, **more: Any) -> Configuration:
    """What the protocol alone does not bring back, the audit does."""
    return Configuration(name=f"audit: {name}", job=WAITING, audit=True, **more)


def _again(name: str, **more: Any) -> Configuration:
    """The same id is submitted again, by B, while A's cancel goes on or after it, with A's message on its way."""
    given: dict[str, Any] = {"specs": (Spec("B", (0,), one_off=True),), "occurrences": 1, "job": ONCE, "queue": SENT}
    given |= {"executors": 2, "quick": TICK}
    return Configuration(name=f"submitted again: {name}", due=0, cancel=True, **(given | more))


def _submit(name: str, **more: Any) -> Configuration:
    return Configuration(name=f"submit: {name}", due=0, quick=EXECUTE, **more)


RECURRING, FAR = Spec("A", (0, 1)), Spec("A", (0, 1), near=False)
ONE_OFF, LATER_ONE_OFF = Spec("A", (0,), one_off=True), Spec("B", (1,), one_off=True)

CONFIGURATIONS = (
    _ticks("two crashes", budget=Budget(crashes=2)),
    _ticks("a claim for each occurrence, a crash", per_claim=1, budget=Budget(crashes=1)),
    _ticks("a claim for each occurrence, a lost answer", per_claim=1, budget=Budget(lost_answers=1)),
    _ticks("a lost answer and a crash", budget=Budget(lost_answers=1, crashes=1)),
    _executors("two crashes", budget=Budget(crashes=2)),
    _executors("a crash, a lost answer, a message twice", budget=Budget(crashes=1, lost_answers=1, duplicates=1)),
    _executors("a refused read, a lost answer, a message twice", budget=Budget(errors=1, lost_answers=1, duplicates=1)),
    _executors("two stalls, a message twice", budget=Budget(stalls=2, duplicates=1)),
    _cancel("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _cancel("failures and a lost answer", failures=True, budget=Budget(lost_answers=1)),
    _cancel("a refused read, a stall", budget=Budget(errors=1, stalls=1)),
    _cancel("beside two ticks", ticks=2, executors=1, quick=EXECUTE),
    _submit("far, two crashes", specs=(FAR,), budget=Budget(crashes=2)),
    _submit("near, two crashes and a lost answer", specs=(RECURRING,), budget=Budget(crashes=2, lost_answers=1)),
    _submit("two of one id, two crashes", specs=(ONE_OFF, LATER_ONE_OFF), budget=Budget(crashes=2)),
    _submit(
        "two of one id, a lost answer and a crash",
        specs=(RECURRING, LATER_ONE_OFF),
        budget=Budget(lost_answers=1, crashes=1),
    ),
    _submit(
        "beside a cancel, a lost answer and a crash",
        specs=(RECURRING,),
        cancel=True,
        budget=Budget(lost_answers=1, crashes=1),
    ),
    _again("failures and a crash", failures=True, budget=Budget(crashes=1)),
    _again("failures and a lost answer", failures=True, budget=Budget(lost_answers=1)),
    _again("a message twice and a lost answer", budget=Budget(duplicates=1, lost_answers=1)),
    _again("for another time, a crash", specs=(LATER_ONE_OFF,), occurrences=2, executors=1, budget=Budget(crashes=1)),
    _again(
        "beyond the horizon, beside a tick, a lost answer",
        specs=(Spec("B", (0,), one_off=True, near=False),),
        job=ONCE._replace(due=0, claimed=None),
        queue=(),
        executors=1,
        quick=EXECUTE,
        budget=Budget(lost_answers=1),
    ),
    _audit("a purged queue and a crash", quick=TICK, failures=True, budget=Budget(purges=1, early_audits=1, crashes=1)),
    _audit("a tick later than 90 s and a crash", quick=EXECUTE, ticks=2, budget=Budget(late_ticks=1, crashes=1)),
)
