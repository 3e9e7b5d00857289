"""Which run of a job may go on beside another: the policies as tables, and what must hold for every order of runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shared.model.job import Overlap
from shared.rules.overlap import Decision, Place, Step, decide

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE, TWO, THREE, FOUR = (START + timedelta(minutes=minute) for minute in range(4))
GO, WAIT, SKIP = Step.GO, Step.WAIT, Step.SKIP
POLICIES: tuple[Overlap, ...] = ("skip", "queue", "replace")


def decided(policy: Overlap, me: datetime, place: Place, *, begun: bool = False) -> Decision:
    return decide(policy, me, has_begun=begun, place=place)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("begun", [False, True])
def test_a_run_takes_a_place_that_nobody_has_or_wants(policy: Overlap, begun: bool) -> None:
    assert decided(policy, TWO, Place(), begun=begun) == Decision(GO, Place(TWO))
    assert decided(policy, TWO, Place(waiting=TWO), begun=begun) == Decision(GO, Place(TWO))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("begun", [False, True])
def test_who_has_the_place_goes_on_and_who_waits_goes_on_waiting(policy: Overlap, begun: bool) -> None:
    assert decided(policy, ONE, Place(ONE, TWO), begun=begun) == Decision(GO, Place(ONE, TWO))


def test_skip() -> None:
    assert decided("skip", TWO, Place(ONE)) == Decision(SKIP, Place(ONE))
    assert decided("skip", ONE, Place(TWO)) == Decision(SKIP, Place(TWO))  # whichever comes first


def test_skip_lets_a_run_that_has_begun_wait_and_keeps_its_turn_for_it() -> None:
    assert decided("skip", ONE, Place(TWO), begun=True) == Decision(WAIT, Place(TWO, ONE))
    assert decided("skip", THREE, Place(None, ONE)) == Decision(SKIP, Place(None, ONE))
    assert decided("skip", ONE, Place(None, ONE), begun=True) == Decision(GO, Place(ONE))


def test_queue_has_one_that_waits() -> None:
    assert decided("queue", TWO, Place(ONE)) == Decision(WAIT, Place(ONE, TWO))
    assert decided("queue", TWO, Place(ONE, TWO)) == Decision(WAIT, Place(ONE, TWO))
    assert decided("queue", THREE, Place(ONE, TWO)) == Decision(SKIP, Place(ONE, TWO))
    assert decided("queue", THREE, Place(ONE, TWO), begun=True) == Decision(WAIT, Place(ONE, TWO))


def test_queue_gives_a_free_place_to_who_waits_and_not_to_who_comes() -> None:
    assert decided("queue", THREE, Place(None, TWO)) == Decision(WAIT, Place(TWO, THREE))


def test_replace_cancels_the_older_one() -> None:
    assert decided("replace", TWO, Place(ONE)) == Decision(WAIT, Place(ONE, TWO), frozenset({ONE}))
    assert decided("replace", TWO, Place(ONE, TWO)) == Decision(WAIT, Place(ONE, TWO), frozenset({ONE}))


def test_replace_the_newest_that_waits_is_the_only_one() -> None:
    two = frozenset({TWO})
    left_out = Place(ONE, THREE, displaced=two)
    assert decided("replace", THREE, Place(ONE, TWO)) == Decision(WAIT, left_out, frozenset({ONE}))
    assert decided("replace", TWO, left_out) == Decision(SKIP, Place(ONE, THREE))
    assert decided("replace", THREE, Place(None, TWO)) == Decision(GO, Place(THREE, displaced=two))
    assert decided("replace", TWO, Place(THREE)) == Decision(SKIP, Place(THREE))


@pytest.mark.parametrize("policy", POLICIES)
def test_who_gave_way_to_a_newer_one_is_skipped_even_when_that_is_over(policy: Overlap) -> None:
    place = Place(displaced=frozenset({TWO}))
    assert decided(policy, TWO, place) == Decision(SKIP, Place())
    assert decided(policy, TWO, place, begun=True) == Decision(GO, Place(TWO))
    assert decided(policy, ONE, place) == Decision(GO, replace(place, holder=ONE))


def test_replace_an_older_run_that_comes_later_replaces_nothing() -> None:
    assert decided("replace", ONE, Place(TWO)) == Decision(SKIP, Place(TWO))
    assert decided("replace", ONE, Place(TWO), begun=True) == Decision(WAIT, Place(TWO))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_that_began_under_another_policy_counts_as_one_that_has_the_place(policy: Overlap) -> None:
    before = Place(earlier=frozenset({ONE, TWO}))
    assert decided(policy, THREE, before).place.holder == TWO
    assert decided(policy, THREE, before).step is not GO
    assert decided(policy, TWO, before, begun=True).step is not GO  # ONE may be going on beside it
    assert decided(policy, TWO, Place(earlier=frozenset({TWO})), begun=True) == Decision(GO, Place(TWO))


def test_even_who_has_the_place_waits_for_one_that_began_under_another_policy() -> None:
    found = decided("skip", ONE, Place(ONE, None, frozenset({TWO})), begun=True)
    assert found == Decision(WAIT, Place(TWO, ONE, frozenset({TWO})))


MOMENTS = st.sampled_from((ONE, TWO, THREE, FOUR))
SOME = st.frozensets(MOMENTS, max_size=2)
PLACES = st.builds(Place, st.none() | MOMENTS, st.none() | MOMENTS, SOME, SOME)


@given(st.sampled_from(POLICIES), MOMENTS, st.booleans(), PLACES)
@settings(max_examples=2000, derandomize=True)
def test_for_every_place(policy: Overlap, me: datetime, begun: bool, place: Place) -> None:
    found = decided(policy, me, place, begun=begun)
    others = {one for one in (place.holder, *place.earlier) if one not in (None, me)}
    if found.step is GO:
        assert not others  # nobody else can be going on
        assert found.place.holder == me
    else:
        assert found.place.holder != me
        assert {place.holder, place.waiting, *place.earlier, *place.displaced} - {
            None
        }  # somebody has been or is before
    if begun:
        assert found.step is not SKIP
    if found.step is SKIP:
        assert me not in {found.place.holder, found.place.waiting, *found.place.displaced}
    assert me not in found.replaced
    assert policy == "replace" or not found.replaced
    assert all(one < me for one in found.replaced)
    assert place.earlier - {me} == found.place.earlier  # only their end takes them out of the account


class Orders(RuleBasedStateMachine):
    """Runs that come, ask, end, fail and come again, in any order; the place is written as decided."""

    @initialize(policy=st.sampled_from(POLICIES))
    def begin(self, policy: Overlap) -> None:
        self.policy, self.place, self.number = policy, Place(), 0
        self.state: dict[datetime, str] = {}  # asks, runs, failed (waits for its retry), over, skipped
        self.begun: set[datetime] = set()

    @rule(late=st.integers(0, 2))
    def comes(self, late: int) -> None:
        """A new run; `late` of those that were due after it have come before."""
        self.number += 10
        me = START + timedelta(seconds=self.number - 11 * late)
        if me not in self.state:
            self.state[me] = "asks"

    @rule(data=st.data())
    def asks(self, data: Any) -> None:
        self._ask(self._one(data, "asks"))

    @rule(data=st.data(), ending=st.sampled_from(("over", "failed")))
    def ends(self, data: Any, ending: str) -> None:
        one = self._one(data, "runs")
        if one is not None:
            self.state[one] = ending

    @rule(data=st.data())
    def is_tried_again(self, data: Any) -> None:
        one = self._one(data, "failed")
        if one is not None:
            self.state[one] = "asks"

    @rule(data=st.data())
    def is_redriven(self, data: Any) -> None:
        one = self._one(data, "over")
        if one is not None and one in self.begun:
            self.state[one] = "asks"

    @invariant()
    def one_goes_on(self) -> None:
        if hasattr(self, "state"):
            assert list(self.state.values()).count("runs") <= 1

    def teardown(self) -> None:
        """Everything comes to its end: nobody waits for ever."""
        if not hasattr(self, "state"):
            return
        for _ in range(4 * len(self.state) + 4):
            for one in [one for one, state in self.state.items() if state in ("asks", "failed")]:
                self._ask(one)
                if self.state[one] == "runs":
                    self.state[one] = "over"
            for one in [one for one, state in self.state.items() if state == "runs"]:
                self.state[one] = "over"
        assert set(self.state.values()) <= {"over", "skipped"}, self.state

    def _one(self, data: Any, state: str) -> datetime | None:
        there = sorted(one for one, how in self.state.items() if how == state)
        return data.draw(st.sampled_from(there)) if there else None

    def _ask(self, me: datetime | None) -> None:
        if me is None:
            return
        is_open = {one for one, state in self.state.items() if state in ("asks", "runs", "failed")} | {me}
        place = Place(
            self.place.holder if self.place.holder in is_open else None,
            self.place.waiting if self.place.waiting in is_open else None,
            displaced=self.place.displaced & is_open,
        )
        found = decide(self.policy, me, has_begun=me in self.begun, place=place)
        self.place = found.place
        if found.step is GO:
            self.begun.add(me)
            self.state[me] = "runs"
        elif found.step is SKIP:
            self.state[me] = "skipped"
        for one in found.replaced:
            if self.state[one] in ("asks", "failed"):
                self.state[one] = "over"


TestOrders = Orders.TestCase
TestOrders.settings = settings(max_examples=300, stateful_step_count=30, deadline=None, derandomize=True, database=None)
