"""The checker on planted faults: each invariant is broken once on purpose, and it must say so.

A right history passes.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.faults.checker import Promise, check
from tests.faults.history import (
    Called,
    CancelAsked,
    Cancelled,
    Ended,
    Event,
    Failed,
    History,
    Journaled,
    Returned,
    RunSeen,
    Sent,
    Stored,
    Submitted,
    Ticked,
)
from tests.support.clocks import START

DUE = START + timedelta(seconds=60)
END = START + timedelta(hours=1)
RUN: dict[str, Any] = {"job_id": "a", "scheduled_for": DUE}
PROMISE = Promise(late_s=30)


def at(seconds: float) -> datetime:
    return DUE + timedelta(seconds=seconds)


def right() -> list[Event]:
    """One job: a failed attempt, then a good one."""
    lease = at(65)
    return [
        Submitted(at=START, job_id="a", first=DUE, max_attempts=2),
        Journaled(at=START, occurrences=(("a", DUE),)),
        Stored(at=START, job_id="a"),
        Sent(at=START, by="submit", occurrences=(("a", DUE),)),
        RunSeen(at=at(1), status="running", attempt=1, attempts_kept=1, lease_expires_at=lease, **RUN),
        Called(at=at(1), attempt=1, **RUN),
        Returned(at=at(2), attempt=1, **RUN),
        RunSeen(at=at(2), status="failed", attempt=1, attempts_kept=1, **RUN),
        RunSeen(at=at(12), status="running", attempt=2, attempts_kept=2, lease_expires_at=at(77), **RUN),
        Called(at=at(12), attempt=2, **RUN),
        Returned(at=at(13), attempt=2, **RUN),
        RunSeen(at=at(13), status="succeeded", attempt=2, attempts_kept=2, **RUN),
        Ended(at=END),
    ]


Plant = Callable[[list[Event]], list[Event]]


def put(place: int, *events: Event) -> Plant:
    return lambda history: [*history[:place], *events, *history[place:]]


def drop(*places: int) -> Plant:
    return lambda history: [event for place, event in enumerate(history) if place not in places]


def change(place: int, **fields: Any) -> Plant:
    def plant(history: list[Event]) -> list[Event]:
        return [replace(event, **fields) if number == place else event for number, event in enumerate(history)]

    return plant


PLANTED: dict[str, tuple[str, str, Plant]] = {
    "an occurrence vanishes": ("I1", "vanished", drop(*range(4, 12))),
    "a run never ends": ("I1", "never came to its end", drop(11)),
    "a run that nobody asked for": (
        "I1",
        "was never due",
        put(12, Called(at=at(20), job_id="a", scheduled_for=at(20), attempt=1)),
    ),
    "a run far too late": ("I1", "no run of a is left", change(5, at=at(31))),
    "two occurrences and one run": ("I1", "no run of a is left", change(0, period_s=100.0, count=2)),
    "cancelled and nobody asked": ("I1", "nobody asked", change(11, status="cancelled", reason="cancelled")),
    "ended without a call or a reason": ("I1", "without a call", drop(5, 6, 9, 10)),
    "two attempts at once": ("I2", "overlaps", lambda h: drop(6)(change(9, at=at(12))(h))),
    "an attempt after success": ("I2", "although the run was succeeded", put(12, Called(at=at(14), attempt=3, **RUN))),
    "a zombie calls the handler": ("I2", "no longer the current", change(9, is_current=False)),
    "early": ("I3", "started early", change(5, at=at(-0.001))),
    "a terminal state changes": (
        "I4",
        "became running",
        put(12, RunSeen(at=at(14), status="running", attempt=3, **RUN)),
    ),
    "a terminal record is gone": ("I4", "became nothing", put(12, RunSeen(at=at(14), status=None, **RUN))),
    "a call after cancel": ("I5", "after cancel had answered", put(8, Cancelled(at=at(3), job_id="a"))),
    "a cancel that does not name what goes on": (
        "I5",
        "does not say so",
        put(6, Cancelled(at=at(1), job_id="a")),
    ),
    "another attempt after a cancel that named one": (
        "I5",
        "after cancel had answered",
        put(6, Cancelled(at=at(1), job_id="a", running=((DUE, 1),))),
    ),
    "a send without a page": ("I6", "never journaled", drop(1)),
    "a page is left": ("I6", "pages are left", change(12, pages=1)),
    "an attempt is counted and not made": ("I7", "called no handler", drop(5, 6)),
    "an attempt number twice": ("I7", "twice", change(9, attempt=1)),
    "one attempt too many": ("I7", "are allowed", change(0, max_attempts=1)),
    "a later attempt is overwritten": ("I7", "attempt 2 is not on record", change(11, attempt=1, attempts_kept=1)),
    "an attempt is not on record": ("I7", "on record", change(11, attempts_kept=1)),
    "finished and in the index": ("I8", "in the index", change(12, indexed=(("a", "cancelled", DUE),))),
    "overdue at the end": ("I8", "in the index at the end", change(12, indexed=(("a", "scheduled", DUE),))),
    "overdue for three ticks": ("I8", "beyond 2 ticks", put(4, *[Ticked(at=at(0), overdue=(("a", DUE),))] * 3)),
    "a message is left": ("end", "messages are left", change(12, messages=1)),
    "the audit finds something": ("end", "the audit finds", change(12, findings=1)),
    "a process fails": ("error", "failed", put(4, Failed(at=at(0), process="tick", error="KeyError", expected=False))),
}


def test_a_right_history_passes() -> None:
    assert check(History(right()), PROMISE) == []


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_fault_is_named(name: str) -> None:
    invariant, says, plant = PLANTED[name]
    found = check(History(plant(right())), PROMISE)
    assert any(one.invariant == invariant and says in one.text for one in found), found


def test_what_is_skipped_with_a_reason_needs_no_run() -> None:
    skipped = RunSeen(at=at(5), status="skipped", reason="catch_up", missed_until=END, **RUN)
    submitted = Submitted(at=START, job_id="a", first=DUE, period_s=100, count=2)  # none of the missed is one of two
    assert check(History([submitted, Stored(at=START, job_id="a"), skipped, Ended(at=END)]), PROMISE) == []


def test_what_a_cancel_caught_needs_no_run_and_what_came_before_it_does() -> None:
    asked = CancelAsked(at=at(10), job_id="a")
    submitted = Submitted(at=START, job_id="a", first=DUE)
    history = [submitted, *right()[1:4], asked, Cancelled(at=at(10), job_id="a"), Ended(at=END)]
    assert check(History(history), PROMISE) == []
    history[4] = replace(asked, at=at(1000))
    history[0] = replace(submitted, period_s=10_000)
    assert [one.invariant for one in check(History(history), PROMISE)] == ["I1", "I1"]


def test_a_submit_that_never_reached_the_table_needs_no_run() -> None:
    assert check(History([right()[0], Ended(at=END)]), PROMISE) == []


CHILD: dict[str, Any] = {"job_id": "b", "scheduled_for": DUE}


def family(*, status: str = "succeeded", anyway: bool = False, called_at: float | None = 14) -> list[Event]:
    """A parent that ends so at 13 s, and its child, which is called (or None: skipped at 13 s)."""
    end: list[Event] = [RunSeen(at=at(13), status="skipped", reason="parent_failed", **CHILD)]
    if called_at is not None:
        end = [
            RunSeen(at=at(called_at), status="running", attempt=1, attempts_kept=1, lease_expires_at=at(99), **CHILD),
            Called(at=at(called_at), attempt=1, **CHILD),
            Returned(at=at(called_at), attempt=1, **CHILD),
            RunSeen(at=at(called_at), status="succeeded", attempt=1, attempts_kept=1, **CHILD),
        ]
    parent = change(11, status=status, reason=None if status == "succeeded" else "why")(right())
    child = Submitted(at=START, job_id="b", first=DUE, depends_on=("a",), runs_anyway=anyway)
    both = [child, Journaled(at=START, occurrences=(("b", DUE),)), Stored(at=START, job_id="b"), *parent[:-1], *end]
    return [*sorted(both, key=lambda event: event.at), parent[-1]]


@pytest.mark.parametrize(
    "history",
    [
        family(),
        family(status="dead_lettered", called_at=None),
        family(status="dead_lettered", anyway=True),
        family(called_at=43),
    ],
)
def test_a_child_that_does_as_its_parent_says_passes(history: list[Event]) -> None:
    assert check(History(history), PROMISE) == []


@pytest.mark.parametrize(
    ("history", "says"),
    [
        (family(called_at=12.5), "was called while its parents were {'a': 'open'}"),
        (family(status="dead_lettered"), "was called while its parents were {'a': 'dead_lettered'}"),
        (family(called_at=None), "was skipped for its parents, which are {'a': 'succeeded'}"),
        (family(called_at=44), "came 0:00:31 after its parents were over"),
    ],
)
def test_a_child_that_does_not_is_named(history: list[Event], says: str) -> None:
    found = check(History(history), PROMISE)
    assert [(one.invariant, says in one.text) for one in found] == [("DAG", True)], found


def test_a_child_that_is_forgotten_is_named() -> None:
    forgotten = [
        event for event in family() if getattr(event, "job_id", "") != "b" or isinstance(event, Submitted | Stored)
    ]
    assert [one.invariant for one in check(History(forgotten), PROMISE)] == ["I1"]
