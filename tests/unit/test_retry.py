"""Backoff: exponential, capped, never formed as a power too large to hold (C41)."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.job import Retry
from shared.queue import MAX_HIDE_S, hidden_s
from shared.rules.retry import backoff_s, ceiling_s, is_last

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
