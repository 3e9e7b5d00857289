"""When messages are best sent: hypothesis looks for a wait that makes one early, late or longer than a second."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.queue import delay_s
from shared.rules.whole_seconds import AHEAD_S, NEAR, wait_s

NOW = datetime(2026, 11, 30, 12, 0, 10, 700_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@given(
    now=st.datetimes(datetime(2026, 11, 30), datetime(2026, 11, 30, 1), timezones=st.just(UTC)),
    ahead=st.timedeltas(timedelta(seconds=AHEAD_S), timedelta(seconds=800)),
)
def test_i3_what_is_sent_after_the_wait_comes_at_most_a_tenth_late_and_never_early(
    now: datetime, ahead: timedelta
) -> None:
    due = now + ahead
    wait = wait_s([due], now)
    assert 0 <= wait <= 1 - NEAR
    sent = now + timedelta(seconds=wait)
    comes = sent + timedelta(seconds=delay_s(due, sent))
    assert timedelta(0) <= comes - due <= NEAR * SECOND
    assert due - sent >= (AHEAD_S - 1) * SECOND


@pytest.mark.parametrize(
    ("dues", "wait"),
    [
        ([], 0),
        (["12:05:00"], 0.3),
        (["12:05:00.7"], 0),  # it comes to the moment
        (["12:05:00.65"], 0),  # it comes 0.05 s late, which no wait is worth
        (["12:05:00", "12:05:30", "12:05:00.9"], 0.3),  # most of them are
        (["12:05:00", "12:00:40"], 0),  # one is due soon: nothing waits
        (["12:05:00", "11:00:00"], 0),
    ],
)
def test_how_long_the_wait_is(dues: list[str], wait: float) -> None:
    assert wait_s(map(at, dues), NOW) == pytest.approx(wait)
