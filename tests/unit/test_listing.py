"""Which way a list takes, and what fits it."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.model.job import JobSpec, Schedule, Target
from shared.rules.listing import ListKind, ListQuery, is_in_window, is_of_group_and_tags, plan_list

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SIX = {"due_from": NOON, "due_to": NOON + timedelta(hours=6)}
LONGER = {"due_from": NOON, "due_to": NOON + timedelta(hours=6, microseconds=1)}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (ListQuery(), ListKind.SCAN),
        (ListQuery(group="g"), ListKind.GROUP),
        (ListQuery(group="g", status="scheduled", tags=("a",), **SIX), ListKind.GROUP),
        (ListQuery(status="dead_lettered"), ListKind.DEAD),
        (ListQuery(status="dead_lettered", group="g", **SIX), ListKind.DEAD),
        (ListQuery(**SIX), ListKind.DUE),
        (ListQuery(status="scheduled", tags=("a",), **SIX), ListKind.DUE),
        (ListQuery(**LONGER), ListKind.SCAN),
        (ListQuery(status="enqueued", **SIX), ListKind.SCAN),
        (ListQuery(status="paused"), ListKind.SCAN),
        (ListQuery(tags=("a",)), ListKind.SCAN),
        (ListQuery(due_from=NOON), ListKind.SCAN),
        (ListQuery(due_to=NOON), ListKind.SCAN),
    ],
)
def test_the_way_of_a_query(query: ListQuery, kind: ListKind) -> None:
    plan = plan_list(query)
    assert plan.kind is kind
    assert plan.reason


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ((), True),
        (("team",), True),
        (("team:blue",), True),
        (("team:red",), False),
        (("blue",), False),
        (("team", "a:b"), True),  # a name that has a colon
        (("a:b:c",), True),
        (("a",), False),
        (("empty",), True),
        (("empty:",), True),
        (("team:blue", "other"), False),
        (("Team",), False),
    ],
)
def test_a_job_has_all_tags_that_are_asked_for(wanted: tuple[str, ...], fits: bool) -> None:
    spec = JobSpec(
        target=Target(kind="python"),
        schedule=Schedule(every="1h", every_s=3600),
        tags={"team": "blue", "a:b": "c", "empty": ""},
        group="g",
    )
    assert is_of_group_and_tags(ListQuery(tags=wanted), spec) is fits
    assert is_of_group_and_tags(ListQuery(tags=wanted, group="h"), spec) is False


def test_a_window_has_its_beginning_and_not_its_end() -> None:
    query = ListQuery(**SIX)
    assert is_in_window(query, NOON)
    assert is_in_window(query, NOON + timedelta(hours=6, microseconds=-1))
    assert not is_in_window(query, NOON + timedelta(hours=6))
    assert not is_in_window(query, NOON - timedelta(microseconds=1))
    assert not is_in_window(query, None)
    assert is_in_window(ListQuery(), None)
    assert not is_in_window(ListQuery(due_to=NOON), None)
    assert is_in_window(ListQuery(due_to=NOON), NOON - timedelta(days=400))


def test_queries_that_mean_the_same_are_the_same() -> None:
    one = ListQuery(tags=("b", "a", "b"), due_from=NOON)
    assert one.canonical == ListQuery(tags=("a", "b"), due_from=NOON).canonical
    others = [
        ListQuery(tags=("a", "b")),
        ListQuery(tags=("a", "b"), due_to=NOON),
        ListQuery(tags=("a", "b"), due_from=NOON, group="a"),
        ListQuery(tags=("a", "b"), due_from=NOON, status="paused"),
        ListQuery(tags=("a",), due_from=NOON),
    ]
    made = [query.canonical for query in (one, *others)]
    assert all(made.count(one) == 1 for one in made)
