"""Backoff: exponential, capped, never formed as a power too large to hold (C41). Which errors are tried again."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.job import Retry
from shared.model.run import Outcome, Result
from shared.queue import MAX_HIDE_S, hidden_s
from shared.rules.retry import backoff_s, ceiling_s, is_last, is_worth_another, kinds_of

retries = st.builds(
    Retry,
    base_s=st.floats(0, 604_800) | st.integers(0, 604_800),
    factor=st.floats(1, 1e6) | st.integers(1, 10),
    max_s=st.floats(0, 604_800) | st.integers(0, 604_800),
)


@given(retries, st.integers(1, 10**6), st.floats(0, 1))
def test_c41_never_negative_never_over_the_cap_and_never_an_error(retry: Retry, attempt: int, fraction: float) -> None:
    wait = backoff_s(retry, attempt, fraction)
    assert 0 <= wait <= retry.max_s
    assert isinstance(hidden_s(wait), int)
    assert 0 <= hidden_s(wait) <= MAX_HIDE_S


@given(retries, st.integers(1, 10**6))
def test_it_never_shrinks_from_attempt_to_attempt(retry: Retry, attempt: int) -> None:
    assert ceiling_s(retry, attempt) <= ceiling_s(retry, attempt + 1)


@given(st.integers(1, 1000), st.integers(1, 9), st.integers(0, 100_000), st.integers(1, 60))
def test_it_is_the_power_where_that_can_be_formed(base_s: int, factor: int, max_s: int, attempt: int) -> None:
    exact = min(Fraction(max_s), Fraction(base_s) * Fraction(factor) ** (attempt - 1))
    assert ceiling_s(Retry(base_s=base_s, factor=factor, max_s=max_s), attempt) == pytest.approx(float(exact))


@pytest.mark.parametrize(
    ("attempt", "expected"), [(1, 2), (2, 4), (3, 8), (9, 512), (10, 900), (64, 900), (1100, 900), (100_000, 900)]
)
def test_c41_base_2_and_cap_900(attempt: int, expected: float) -> None:
    retry = Retry(base_s=2, factor=2, max_s=900)
    assert ceiling_s(retry, attempt) == expected
    assert backoff_s(retry, attempt, 0.5) == expected / 2
    assert backoff_s(retry, attempt, 0) == 0


@pytest.mark.parametrize(("attempt", "last"), [(1, False), (2, False), (3, True), (4, True)])
def test_the_last_attempt(attempt: int, last: bool) -> None:
    assert is_last(Retry(max_attempts=3), attempt) is last


# Kinds of error

words = st.text(alphabet="abE.", min_size=1, max_size=3)
kinds = st.lists(words, max_size=5)


@given(kinds, kinds, kinds)
def test_what_is_given_up_is_never_tried_again_whatever_else_it_is(
    of_error: list[str], retry_on: list[str], give_up_on: list[str]
) -> None:
    retry = Retry(retry_on=tuple(retry_on), give_up_on=tuple(give_up_on))
    if set(of_error) & set(give_up_on):
        assert not is_worth_another(retry, of_error)


@given(kinds, kinds, kinds)
def test_what_is_not_given_up_is_tried_again_if_it_is_named_or_nothing_is(
    of_error: list[str], retry_on: list[str], give_up_on: list[str]
) -> None:
    retry = Retry(retry_on=tuple(retry_on), give_up_on=tuple(give_up_on))
    if not set(of_error) & set(give_up_on):
        assert is_worth_another(retry, of_error) is (not retry_on or bool(set(of_error) & set(retry_on)))


@given(kinds)
def test_the_default_policy_tries_everything_again(of_error: list[str]) -> None:
    assert is_worth_another(Retry(), of_error)


@given(kinds, kinds, kinds, words)
def test_one_more_kind_to_give_up_never_makes_for_more_attempts(
    of_error: list[str], retry_on: list[str], give_up_on: list[str], more: str
) -> None:
    fewer = is_worth_another(Retry(retry_on=tuple(retry_on), give_up_on=(*give_up_on, more)), of_error)
    assert fewer <= is_worth_another(Retry(retry_on=tuple(retry_on), give_up_on=tuple(give_up_on)), of_error)


@given(st.sampled_from(Outcome), st.lists(words, max_size=3))
def test_a_failure_has_its_own_kinds_first_and_just_one_of_ours_last(outcome: Outcome, own: list[str]) -> None:
    found = kinds_of(Result(outcome=outcome, error_kinds=tuple(own)))
    assert list(found[: len(own)]) == own
    ours = {Outcome.FAILED: "failed", Outcome.TIMED_OUT: "timed_out", Outcome.LOST: "lost"}
    assert found[len(own) :] == ((ours[outcome],) if outcome in ours else ())
