"""What one AWS call is to the search, and how it is told. It knows no condition (store_* do)."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from tests.model.world import Holder, Job, Message, Page, Place, Run, World, spent

OK, LEASE_LOST, CANCEL_REQUESTED, ERROR = "ok", "lease lost", "cancel requested", "AWS error"

Outcomes = list[tuple[World, Any]]


class ViolationError(Exception):
    """A property does not hold after this step."""


class Work(NamedTuple):
    """Of the job that an attempt read: what it is called with."""

    by: str
    slots: tuple[int, ...]
    overlap: str
    limited: bool
    parents: tuple[int, ...]
    on_parent_failure: str


class Refused(NamedTuple):
    """A write that the run's condition did not allow, and what the run is."""

    there: Run


class Due(NamedTuple):
    """What the index shows of a job, and when it was asked."""

    job: Job
    now: int


class Claim(NamedTuple):
    """What a claim is made of: due and revision as they were seen, and what the plan makes of them."""

    due: int | None
    revision: int
    until: int
    then: int | None
    count: int
    job: int = 0

    def __str__(self) -> str:
        return f"{self.due}@r{self.revision}, next {self.then}"


class End(NamedTuple):
    """How an attempt is to end. `or_cancel`: only if no cancel was asked for. `revision`: whose the run is then."""

    status: str
    attempts: tuple[str, ...]
    or_cancel: bool = True
    revision: int | None = None
    reason: str = ""


class Call(NamedTuple):
    """One call to be made: `effect(store, world, actor, *args)` gives the worlds and answers that may follow."""

    name: str
    effect: Callable[..., Outcomes]
    store: Any
    args: tuple[Any, ...]
    writes: bool  # it may take effect, its answer be lost, and be made again
    at_once: bool  # nothing that others do matters to it, nor it to them: it is made before they go on
    may_fail: bool  # AWS may refuse it, with an answer that says so

    def outcomes(self, world: World, me: int) -> Outcomes:
        found = self.effect(self.store, world, me, *self.args)
        return [*found, (spent(world, "errors"), ERROR)] if self.may_fail and world.budget.errors else found

    def __str__(self) -> str:
        return " ".join([self.name, *map(told, self.args)])


def call(
    name: str, *, writes: bool = False, at_once: bool = False, may_fail: bool = False
) -> Callable[[Callable[..., Outcomes]], Callable[..., Call]]:
    def decorate(effect: Callable[..., Outcomes]) -> Callable[..., Call]:
        @wraps(effect)
        def make(self: Any, *args: Any) -> Call:
            return Call(name, effect, self, args, writes, at_once, may_fail)

        return make

    return decorate


def told(value: object) -> str:
    """A value as a trace shows it: `0@r1` is occurrence 0 under revision 1."""
    match value:
        case Call() | Claim():
            return str(value)
        case Work():
            return f"of {value.by}"
        case Message():
            kind = f" to {value.until} skipped" if value.until >= 0 else " woken" if value.woken else ""
            return f"{value.slot}@r{value.revision}{kind}"
        case Run():
            return f"{value.status} (attempt {value.number})"
        case Refused(there):
            return f"refused: {told(there)}"
        case Job():
            return f"{value.by} r{value.revision} {value.status} due {value.due}"
        case Due(job, now):
            return f"{told(job)} at {now}"
        case Page():
            return f"page {value.name} {told(value.messages)}"
        case Place():
            return f"place of {told(value.holder)}, next {told(value.waiting)}"
        case Holder():
            return f"{value.slot}#{value.number}"
        case tuple() | frozenset():
            return "[" + " ".join(map(told, value)) + "]"
        case None:
            return "–"
    return str(value)
