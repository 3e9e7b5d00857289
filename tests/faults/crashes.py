"""Every crash point of a story: the process dies just before a step takes effect, or just after; then time passes.

A point has a one-line name, `<scenario> @ before 17`, and `replay` runs it again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import ceil

from tests.faults.checker import Violation, check
from tests.faults.history import Called, Crashed, History
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.system import Hook, Step, System, deployed
from tests.support.aws import VISIBILITY_TIMEOUT_S


@dataclass(frozen=True)
class Point:
    """One place to die: step `number`, `before` or `after` its effect."""

    when: str
    number: int

    def __str__(self) -> str:
        return f"{self.when} {self.number}"


@dataclass
class Dying(Hook):
    """Kills the process that comes to one of `points`; keeps every step that it sees."""

    points: tuple[Point, ...] = ()
    system: System | None = None
    seen: list[Step] = field(default_factory=list)
    is_over: bool = False

    def before(self, step: Step) -> None:
        if not self.is_over:
            self.seen.append(step)
            self._die("before", step)

    def after(self, step: Step) -> None:
        if not self.is_over:
            self._die("after", step)

    def _die(self, when: str, step: Step) -> None:
        for point in self.points:
            if point.number == step.number and point.when == when and self.system is not None:
                self.system.dies(step, when)


# What one crash may cost where it is more than the scenario's own: nothing has hidden the message for a lease only yet.
LATE_S = {"before execute: ChangeMessageVisibilityBatch": VISIBILITY_TIMEOUT_S + 10}


@dataclass(frozen=True)
class Tried:
    """What came of one try. `late_s`: the latest first call; `where` it died."""

    name: str
    where: tuple[str, ...]
    late_s: float
    violations: tuple[Violation, ...]


def told(scenario: Scenario, points: tuple[Point, ...]) -> tuple[History, list[Step]]:
    """The story with these crashes, and the steps up to its own end."""
    hook = Dying(points)
    with deployed(hook) as system:
        hook.system = system
        scenario.story(system)
        hook.is_over = True
        system.settle(scenario.settle_s)
        return system.end(), hook.seen


def run(scenario: Scenario, points: tuple[Point, ...]) -> tuple[Tried, list[Step]]:
    """One try, judged; and the steps of its story, for the choice of a second crash."""
    history, steps = told(scenario, points)
    name = f"{scenario.name} @ {', '.join(map(str, points))}"
    where = tuple(crash.step for crash in history.of(Crashed))
    promise = replace(scenario.promise, late_s=scenario.promise.late_s + sum(LATE_S.get(step, 0) for step in where))
    return Tried(name, where, _latest_s(history), tuple(check(history, promise))), steps


def points_of(steps: list[Step], after: int = 0) -> Iterator[Point]:
    """All places to die from step `after` + 1 on. After a read is the same place as before the next step."""
    for step in steps:
        if step.number > after:
            yield Point("before", step.number)
            if step.has_effect:
                yield Point("after", step.number)


def every_point(scenario: Scenario, stride: int = 1, whole: int = 0) -> Iterator[Tried]:
    """All crash points of a scenario; with `stride`, each so many-th, where there are more than `whole`."""
    tried, steps = run(scenario, ())
    yield tried
    points = list(points_of(steps))
    for point in points if len(points) <= whole else points[::stride]:
        yield run(scenario, (point,))[0]


def every_pair(
    scenario: Scenario, stride: int = 1, part: tuple[int, int] = (0, 1), most_seconds: int = 1000
) -> Iterator[Tried]:
    """All pairs of crash points: the second is one of the steps that the story takes after the first crash.

    With `stride`, each so many-th first, and of these each so many-th second. `part` (k, n): of all
    firsts, only each n-th from the k-th on. Of a long story `most_seconds` to a first, evenly, which move on by a step
    from first to first, so that neighbours try different ones.
    """
    _, steps = run(scenario, ())
    for place, first in list(enumerate(points_of(steps)))[::stride][part[0] :: part[1]]:
        _, later = run(scenario, (first,))
        seconds = list(points_of(later, first.number))[::stride]
        apart = max(1, ceil(len(seconds) / most_seconds))
        for second in seconds[place % apart :: apart]:
            yield run(scenario, (first, second))[0]


def replay(name: str) -> tuple[History, Tried]:
    """Run `<scenario> @ before 17, after 30` again."""
    title, _, places = name.partition(" @ ")
    points = tuple(
        Point(when, int(number)) for when, number in (place.split() for place in places.split(", ") if place)
    )
    scenario = SCENARIOS[title]
    return told(scenario, points)[0], run(scenario, points)[0]


def _latest_s(history: History) -> float:
    first: dict[tuple[str, object], timedelta] = {}
    for call in history.of(Called):
        first.setdefault(call.occurrence, call.at - call.scheduled_for)
    return max((late.total_seconds() for late in first.values()), default=0.0)
