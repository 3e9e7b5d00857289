"""Every interleaving of two actors with at most two preemptions, at the grain of steps, and its one-line name.

An actor is one process in a thread of its own; at each step it waits until it is its turn. A schedule says who begins
and after how many of its own steps an actor is preempted:

    tick/cancel: A3 B2      A makes 3 steps, B makes 2, A goes on to its end, then B
    tick/cancel: B4         B makes 4 steps, A comes to its end, then B
    tick/cancel: A          A to its end, then B

Two preemptions are enough for all that one actor can do between two steps of the other, and again after that.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.faults.checker import Promise, Violation, check
from tests.faults.history import History
from tests.faults.system import CALL, Hook, Step, System, deployed

Actor = Callable[[], object]
Setting = Callable[[System], tuple[Actor, Actor]]
WAIT_S = 20  # in real time; an actor that waits longer has been forgotten by a fault of this engine


@dataclass(frozen=True)
class Pair:
    """Two actors and what leads up to them. `asleep_s`: how much time passes while the first to be preempted waits."""

    name: str
    setting: Setting
    promise: Promise
    asleep_s: float
    settle_s: float


@dataclass(frozen=True)
class Schedule:
    """Who begins, and after how many steps it, and then the other, is preempted."""

    first: str
    steps: tuple[int, ...]

    def turns(self) -> list[tuple[str, int | None]]:
        """Who may make how many steps, in order; None: to its end."""
        other = "B" if self.first == "A" else "A"
        names = (self.first, other)
        cut: list[tuple[str, int | None]] = [(names[place], steps) for place, steps in enumerate(self.steps)]
        rest = (self.first, other) if len(self.steps) != 1 else (other, self.first)
        return cut + [(name, None) for name in rest]

    def __str__(self) -> str:
        names = (self.first, "B" if self.first == "A" else "A")
        return " ".join(f"{name}{count}" for name, count in zip(names, self.steps, strict=False)) or self.first

    @classmethod
    def read(cls, text: str) -> "Schedule":
        parts = text.split()
        return cls(parts[0][0], tuple(int(part[1:]) for part in parts if part[1:]))


@dataclass
class Turns(Hook):
    """Hands the turn from actor to actor. `unused`: preemptions of which the actor had already come to its end."""

    schedule: Schedule
    slept: Callable[[float], object]
    asleep_s: float
    made: list[str] = field(default_factory=list)
    unused: int = 0

    def __post_init__(self) -> None:
        self._turns = self.schedule.turns()
        self._ended: set[str] = set()
        self._mine = {name: threading.Semaphore(0) for name in "AB"}
        self._here = threading.local()
        self._left = self._turns[0][1]

    def run(self, actors: dict[str, Actor]) -> None:
        """Both actors to their ends."""
        threads = [threading.Thread(target=self._act, args=(name, actor)) for name, actor in actors.items()]
        for thread in threads:
            thread.start()
        self._mine[self._turns[0][0]].release()
        for thread in threads:
            thread.join(WAIT_S)
            if thread.is_alive():
                raise AssertionError(f"{self.schedule}: an actor waits for ever after {self.made}")

    def before(self, step: Step) -> None:
        name = getattr(self._here, "name", None)
        if name is None:  # the story before and after the two
            return
        if step.name == CALL and self.asleep_s:
            # Nothing can hold back a process that falls asleep between its last look at the lease and the call.
            return
        if self._left == 0:
            self._hand_over()
            self._wait(name)
        if self._left is not None:
            self._left -= 1
        self.made.append(f"{name} {step}")

    def _act(self, name: str, actor: Actor) -> None:
        self._here.name = name
        self._wait(name)
        try:
            actor()
        finally:
            self._ended.add(name)
            if self._left:  # it came to its end before it could be preempted
                self.unused += 1
            self._hand_over()

    def _hand_over(self) -> None:
        """To the next turn's actor, if there is one that has not come to its end."""
        while len(self._turns) > 1:
            if len(self._turns) == len(self.schedule.turns()):
                self.slept(self.asleep_s)
            del self._turns[0]
            name, self._left = self._turns[0]
            if name not in self._ended:
                self._mine[name].release()
                return

    def _wait(self, name: str) -> None:
        if not self._mine[name].acquire(timeout=WAIT_S):
            raise AssertionError(f"{self.schedule}: {name} never got its turn after {self.made}")


@dataclass(frozen=True)
class Woven:
    """What came of one schedule."""

    name: str
    made: tuple[str, ...]
    unused: int
    violations: tuple[Violation, ...]


def told(pair: Pair, schedule: Schedule) -> tuple[History, Turns]:
    """The history of this schedule."""
    with deployed() as system:
        actors = dict(zip("AB", pair.setting(system), strict=True))
        turns = Turns(schedule, system.clock.advance, pair.asleep_s)
        system.hook = turns
        turns.run(actors)
        system.hook = Hook()
        system.settle(pair.settle_s)
        return system.end(), turns


def run(pair: Pair, schedule: Schedule) -> Woven:
    """One schedule, judged."""
    history, turns = told(pair, schedule)
    violations = tuple(check(history, pair.promise))
    return Woven(f"{pair.name}: {schedule}", tuple(turns.made), turns.unused, violations)


def every_schedule(pair: Pair, stride: int = 1) -> Iterator[Woven]:
    """All schedules with none, one or two preemptions; with `stride`, each so many-th."""
    number = 0
    for first in "AB":
        yield run(pair, Schedule(first, ()))
        for steps in range(1, 10**6):
            once = run(pair, Schedule(first, (steps,)))
            if once.unused:
                break
            yield once
            for more in range(1, 10**6):
                number += 1
                if number % stride:
                    # The other's steps to its end are not known before: they are those of the one preemption.
                    if more >= _length(once, first):
                        break
                    continue
                twice = run(pair, Schedule(first, (steps, more)))
                if twice.unused:
                    break
                yield twice


def _length(woven: Woven, first: str) -> int:
    """How many steps the other actor made."""
    return sum(not step.startswith(first) for step in woven.made)


def replay(pairs: dict[str, Pair], name: str) -> tuple[History, Woven]:
    """Run `tick/cancel: A3 B2` again."""
    title, _, schedule = name.partition(": ")
    pair = pairs[title]
    return told(pair, Schedule.read(schedule))[0], run(pair, Schedule.read(schedule))
