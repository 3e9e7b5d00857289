"""The rules of jobs that depend on others, as properties: resolution, circles, the order of a DAG."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.submit.documents import JobStatusText
from shared.model.job import OnParentFailure
from shared.model.run import Attempt, Outcome, Run, RunStatus
from shared.rules.dependencies import (
    Standing,
    Word,
    ancestors_of,
    back_to,
    in_generations,
    is_past,
    standing_of,
    word_of,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
STANDINGS = st.lists(st.sampled_from(Standing), max_size=20)
POLICIES = st.sampled_from(get_args(OnParentFailure))
Graph = dict[str, tuple[str, ...]]


def test_every_shown_status_has_a_standing() -> None:
    done = {"succeeded", "completed"}
    failed = {"dead_lettered", "cancelled", "skipped"}
    for status in get_args(JobStatusText):
        expected = Standing.DONE if status in done else Standing.FAILED if status in failed else Standing.OPEN
        assert standing_of(status) is expected
    assert standing_of(None) is Standing.FAILED


@given(STANDINGS, POLICIES)
def test_the_word_is_what_the_parents_say(standings: list[Standing], policy: OnParentFailure) -> None:
    word = word_of(standings, policy)
    if Standing.FAILED in standings and policy == "skip":
        assert word is Word.SKIP
    elif Standing.OPEN in standings:
        assert word is Word.WAIT
    else:
        assert word is Word.GO


@given(STANDINGS, POLICIES, st.data())
def test_a_word_that_is_said_stays(standings: list[Standing], policy: OnParentFailure, data: st.DataObject) -> None:
    """What is over never changes: later only open parents stand otherwise, and a GO or SKIP is said again."""
    word = word_of(standings, policy)
    later = [data.draw(st.sampled_from(Standing)) if one is Standing.OPEN else one for one in standings]
    if word is not Word.WAIT:
        assert word_of(later, policy) is word


@given(st.lists(st.sampled_from([None, *Outcome]), min_size=1, max_size=6))
def test_the_gate_is_past_once_a_handler_was_called(outcomes: list[Outcome | None]) -> None:
    attempts = tuple(
        Attempt(attempt=n, worker_id="w", started_at=NOW, lease_expires_at=NOW + timedelta(seconds=65), outcome=outcome)
        for n, outcome in enumerate(outcomes, 1)
    )
    run = Run(
        job_id="a", scheduled_for=NOW, status=RunStatus.RUNNING, revision=1, attempt=len(attempts), attempts=attempts
    )
    assert is_past(run) == any(outcome not in (None, Outcome.LOST) for outcome in outcomes[:-1])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = [f"j{n}" for n in range(draw(st.integers(1, 8)))]
    outside = [*names, "out"]
    return {name: tuple(draw(st.lists(st.sampled_from(outside), max_size=4, unique=True))) for name in names}


def closure(graph: Graph) -> dict[str, set[str]]:
    """All that stands above each, by repeating until nothing is added."""
    above = {name: set(parents) for name, parents in graph.items()}
    changed = True
    while changed:
        changed = False
        for found in above.values():
            more = {far for near in found for far in above.get(near, ())} - found
            found.update(more)
            changed = changed or bool(more)
    return above


@given(graphs(), st.integers(0, 9))
def test_ancestors_are_all_that_can_be_reached_or_too_many(graph: Graph, most: int) -> None:
    for name, expected in closure(graph).items():
        assert ancestors_of(name, graph, most) == (expected if len(expected) <= most else None)


@given(graphs())
def test_a_circle_is_found_at_the_first_parent_that_closes_it(graph: Graph) -> None:
    above = closure(graph)
    for name, parents in graph.items():
        closing = [place for place, parent in enumerate(parents) if parent == name or name in above.get(parent, ())]
        assert back_to(name, parents, graph) == (closing[0] if closing else None)
        assert (name in above[name]) == bool(closing)


@given(graphs())
def test_generations_are_in_order_and_leave_out_what_is_in_or_behind_a_circle(graph: Graph) -> None:
    above = closure(graph)
    generations = in_generations(graph)
    number = {name: place for place, generation in enumerate(generations) for name in generation}
    assert sum(map(len, generations)) == len(number)
    in_circle = {name for name in graph if name in above[name]}
    assert set(number) == {name for name in graph if name not in in_circle and not above[name] & in_circle}
    for name, place in number.items():
        inner = [number[parent] for parent in graph[name] if parent in graph]
        assert place == max(inner, default=-1) + 1  # after all of them, and no later than it must be


def test_the_order_within_a_generation_is_that_of_the_call() -> None:
    assert in_generations({"c": ("a",), "b": (), "a": (), "d": ("b", "out")}) == [["b", "a"], ["c", "d"]]


@pytest.mark.parametrize("length", [1, 200])
def test_a_long_chain(length: int) -> None:
    graph: Graph = {f"j{n}": (f"j{n - 1}",) if n else () for n in range(length + 1)}
    assert len(ancestors_of(f"j{length}", graph, length) or ()) == length
    assert ancestors_of(f"j{length}", graph, length - 1) is None
    assert len(in_generations(graph)) == length + 1
