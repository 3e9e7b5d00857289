"""The search: every state that the actors can reach, shortest ways first. It knows nothing of the protocol.

A state is the number of a world and, for each actor, the number of its place. What one actor can do depends on the
world and its own place alone, so that it is worked out once; actors of a kind are interchangeable, so that of the
states that differ only in who is who one is kept. From every state the end must be in reach, without any fault.
"""

import gc
import itertools
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from tests.model.actors import Actor, died, faults_of, faults_of_aws, time_passes
from tests.model.calls import Call, ViolationError, told
from tests.model.ends import unfinished
from tests.model.flows import Flow
from tests.model.world import World, spent, swapped, without

State = tuple[int, ...]  # world, then a place for each actor
IDLE, DONE = 0, 1  # places of an actor that is in no flow: it may begin; it will not begin again


class Step(NamedTuple):
    """Actor `actor` (-1: none) may go on like this; with `violation` the step breaks a property."""

    parts: tuple[object, ...]
    actor: int
    world: int
    place: int
    progress: bool  # no fault, and nobody's free choice
    violation: str | None = None

    @property
    def told(self) -> str:
        return "".join(part if isinstance(part, str) else told(part) for part in self.parts)


class Place(NamedTuple):
    """Where a flow stands: how to bring it there, and the call it is about to make."""

    flow: Callable[[], Flow]
    answers: tuple[Any, ...]
    call: Call
    again: bool = False  # it was made once and took effect; its answer was lost


@dataclass(frozen=True)
class Verdict:
    states: int
    steps: int
    ends: int
    seconds: float
    violation: str | None = None
    trace: tuple[str, ...] = ()


def story(verdict: Verdict) -> str:
    """The violation, and a shortest way to it."""
    return "\n".join([str(verdict.violation), *verdict.trace])


class Places:
    """The places of flows, by number. Two pasts that lead to one line with one set of variables are one place."""

    def __init__(self) -> None:
        self.all: list[Place | None] = [None, None]
        self._numbers: dict[Any, int] = {}
        self._after: dict[tuple[int, Any], int | None] = {}

    def first(self, flow: Callable[[], Flow]) -> int | None:
        """Where `flow` begins; None: it makes no call."""
        return self._place(flow, ())

    def after(self, number: int, answer: Any) -> int | None:
        """Where the flow at place `number` is once its call was answered so; None: it has ended."""
        key = (number, answer)
        if key not in self._after:
            place = self.all[number]
            assert place is not None
            self._after[key] = self._place(place.flow, (*place.answers, answer))
        return self._after[key]

    def _place(self, flow: Callable[[], Flow], answers: tuple[Any, ...]) -> int | None:
        going = flow()
        call = next(going, None)
        for answer in answers:
            try:
                call = going.send(answer)
            except StopIteration:
                return None
        if call is None:
            return None
        return self._number(Place(flow, answers, call), _line(going))

    def again(self, number: int) -> int:
        """The same place, with its call made once before."""
        place = self.all[number]
        assert place is not None
        return number if place.again else self._number(place._replace(again=True), number)

    def _number(self, place: Place, line: Any) -> int:
        number = self._numbers.setdefault(line, len(self.all))
        if number == len(self.all):
            self.all.append(place)
        return number


def _line(flow: Any) -> tuple[Any, ...]:
    """The frames of a flow that waits: code, position and variables of each."""
    frames = []
    while flow is not None:
        frame = flow.gi_frame
        frames.append((frame.f_code, frame.f_lasti, tuple(sorted(frame.f_locals.items()))))
        flow = flow.gi_yieldfrom
    return tuple(frames)


@dataclass
class Search:
    """The search from `start`. `normal` takes out of a world what matters to nobody any more.

    `reduced`: what differs only in who is who is one, and calls that commute with all others come in one order.
    """

    start: World
    actors: Sequence[Actor]
    normal: Callable[[World], World]
    reduced: bool = True
    limit: int = 2_000_000
    places: Places = field(default_factory=Places)

    def __post_init__(self) -> None:
        self.worlds: list[World] = []
        self._numbers: dict[World, int] = {}
        self.steps = cache(self._steps)
        self.steps_of_aws = cache(self._steps_of_aws)
        self.last_resort = cache(self._last_resort)
        self._swapped = cache(self._swap)
        self.ends: set[World] = set()  # found by run
        kinds: dict[str, list[int]] = defaultdict(list)
        for me, actor in enumerate(self.actors):
            kinds[actor.kind if actor.alike else actor.name].append(me)
        self.pairs = [tuple(places) for places in kinds.values() if len(places) == 2] if self.reduced else []

    def run(self) -> Verdict:
        """Search until all is seen or a property is broken; the trace is then a shortest one. Seconds are of CPU."""
        collecting = gc.isenabled()
        gc.disable()  # nothing here is garbage before the end, and looking for it costs as much as the search
        try:
            return self._run()
        finally:
            if collecting:
                gc.enable()

    def _run(self) -> Verdict:
        begun = time.process_time()
        first = self.canonical((self._number(self.start), *(IDLE for _ in self.actors)))
        seen, states, parents = {first: 0}, [first], array("l", [-1])
        edges, ends, taken = array("l"), array("l"), 0
        broken: tuple[int, Step | str] | None = None
        for number, state in enumerate(states):  # grows as it goes
            progress = False
            for step in self.after(state):
                taken += 1
                if step.violation:
                    broken = (number, step)
                    break
                then = self.canonical(self.moved(state, step))
                known = seen.setdefault(then, len(states))
                if known == len(states):
                    states.append(then)
                    parents.append(number)
                if step.progress and known != number:
                    progress = True
                    edges.extend((number, known))
            if broken:
                break
            if not progress:
                ends.append(number)
                self.ends.add(self.worlds[state[0]])
                wrong = unfinished(self.worlds[state[0]])
                if wrong:
                    broken = (number, wrong)
                    break
            if len(states) > self.limit:
                broken = (number, f"more than {self.limit} states")
                break
        if not broken and (stuck := _cannot_end(len(states), edges, ends)) is not None:
            broken = (stuck, "from here on no end can be reached")
        seconds = time.process_time() - begun
        if not broken:
            return Verdict(len(states), taken, len(ends), seconds)
        trace, what = self._told(states, parents, *broken)
        return Verdict(len(states), taken, len(ends), seconds, what, trace)

    def after(self, state: State, *, every: bool = False) -> Iterator[Step]:
        """What may happen next; an actor of last resort begins only when nothing else makes progress.

        A call that nothing else matters to goes first, and alone; not so with `every`.
        """
        world, progress = state[0], False
        for me, place in enumerate(state[1:]):
            if not every and self.at_once(me, place):
                yield from self.steps(me, world, place)
                return
        for me in range(len(self.actors)):
            for step in self.steps(me, world, state[me + 1]):
                progress = progress or (step.progress and (step.world, step.place) != (world, state[me + 1]))
                yield step
        for step in self.steps_of_aws(world):
            progress = progress or step.progress
            yield step
        if not progress:
            yield from self.last_resort(world)

    def at_once(self, me: int, place: int) -> bool:
        """Whether the call that `me` is about to make goes before all that others do."""
        at, actor = self.places.all[place], self.actors[me]
        if at is None or at.again or not (self.reduced or actor.quick):
            return False
        return actor.quick or at.call.at_once or (actor.in_one and not at.answers)

    def moved(self, state: State, step: Step) -> State:
        if step.actor < 0:
            return (step.world, *state[1:])
        at = step.actor + 1
        return (step.world, *state[1:at], step.place, *state[at + 1 :])

    def canonical(self, state: State) -> State:
        """The least of the states that differ from this one only in who is who."""
        for one, two in self.pairs:
            if state[one + 1] < state[two + 1]:
                continue
            other = list(state)
            other[0] = self._swapped(state[0], one, two)
            other[one + 1], other[two + 1] = other[two + 1], other[one + 1]
            state = min(state, tuple(other), key=lambda s: (s[one + 1], s[two + 1], s[0]))
        return state

    def _swap(self, world: int, one: int, two: int) -> int:
        return self._number(swapped(self.worlds[world], one, two))

    def _number(self, world: World) -> int:
        world = self.normal(world)
        number = self._numbers.setdefault(world, len(self.worlds))
        if number == len(self.worlds):
            self.worlds.append(world)
        return number

    def _steps(self, me: int, number: int, place: int) -> list[Step]:
        if place in (IDLE, DONE):
            return list(self._beginnings(me, number)) if place == IDLE else []
        return list(self._calls(me, number, place))

    def _beginnings(self, me: int, number: int) -> Iterator[Step]:
        actor, world = self.actors[me], self.worlds[number]
        early = actor.last_resort and world.budget.early_audits > 0
        if actor.last_resort and not early:
            return
        for begun in actor.begin(spent(world, "early_audits") if early else world, me):
            place = self.places.first(begun.flow)
            then = begun.world if place is not None else without(begun.world, me)
            at = place if place is not None else self._rest(me)
            yield Step((actor.name, ": ", begun.told), me, self._number(then), at, not actor.once and not early)

    def _last_resort(self, number: int) -> list[Step]:
        found = []
        for me, actor in enumerate(self.actors):
            for begun in actor.begin(self.worlds[number], me) if actor.last_resort else ():
                place = self.places.first(begun.flow)
                if place is not None:
                    found.append(Step((actor.name, ": ", begun.told), me, self._number(begun.world), place, True))
        return found

    def _calls(self, me: int, number: int, place: int) -> Iterator[Step]:
        actor, world = self.actors[me], self.worlds[number]
        at = self.places.all[place]
        assert at is not None
        try:
            outcomes = at.call.outcomes(world, me)
        except ViolationError as violation:
            yield Step((actor.name, ": ", at.call), me, number, place, True, str(violation))
            return
        for then, answer in outcomes:
            after = self.places.after(place, answer)
            left = then if after is not None else without(then, me)
            ended = after if after is not None else self._rest(me)
            progress = then.budget == world.budget
            yield Step((actor.name, ": ", at.call, " → ", answer), me, self._number(left), ended, progress)
            if at.call.writes and world.budget.lost_answers and then != world:
                parts = ("!! ", actor.name, ": ", at.call, " takes effect, its answer is lost, it is made again")
                lost = self._number(spent(then, "lost_answers"))
                yield Step(parts, me, lost, self.places.again(place), False)
        if world.budget.crashes:
            parts = ("!! ", actor.name, " dies before ", at.call)
            yield Step(parts, me, self._number(died(world, me)), self._rest(me), False)
        for what, then in faults_of(actor.kind, world, me):
            yield Step(("!! ", actor.name, what), me, self._number(then), place, False)

    def _rest(self, me: int) -> int:
        return DONE if self.actors[me].once else IDLE

    def _steps_of_aws(self, number: int) -> list[Step]:
        world = self.worlds[number]
        passing = [Step((what,), -1, self._number(then), 0, True) for what, then in time_passes(world)]
        return passing + [Step((what,), -1, self._number(then), 0, False) for what, then in faults_of_aws(world)]

    def _told(
        self, states: list[State], parents: "array[int]", number: int, broken: "Step | str"
    ) -> tuple[tuple[str, ...], str]:
        """The way to state `number` step by step, with every actor under one name throughout."""
        way = [number]
        while parents[way[-1]] >= 0:
            way.append(parents[way[-1]])
        state, lines = (self._number(self.start), *(IDLE for _ in self.actors)), []
        for goal in (states[n] for n in reversed(way[:-1])):
            step = next(
                s
                for s in self.after(state, every=True)
                if not s.violation and self.canonical(self.moved(state, s)) == goal
            )
            lines.append(step.told)
            state = self.moved(state, step)
        if isinstance(broken, str):
            return tuple(lines), broken
        last = next(step for step in self.after(state, every=True) if step.violation)
        return (*lines, last.told), str(last.violation)


def _cannot_end(count: int, edges: "array[int]", ends: "array[int]") -> int | None:
    """The first state from which no end can be reached by progress alone; None: all can."""
    into: dict[int, list[int]] = defaultdict(list)
    for source, target in itertools.batched(edges, 2) if hasattr(itertools, "batched") else _pairs(edges):
        into[target].append(source)
    can = bytearray(count)
    todo = list(ends)
    for number in todo:
        can[number] = 1
    while todo:
        for source in into.get(todo.pop(), ()):
            if not can[source]:
                can[source] = 1
                todo.append(source)
    return next((number for number in range(count) if not can[number]), None)


def _pairs(edges: "array[int]") -> Iterator[tuple[int, int]]:
    return zip(edges[::2], edges[1::2], strict=True)
