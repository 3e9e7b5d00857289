"""Messages as text, delays and visibilities within SQS's limits."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.message import Message
from shared.queue import MAX_HIDE_S, BadMessageError, delay_s, hidden_s, message_of, message_text
from tests.support.aws import Aws, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.world import World

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))
messages = st.builds(
    Message,
    job_id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", fullmatch=True),
    scheduled_for=moments,
    revision=st.integers(1, 10**9),
    fence=st.integers(0, 10**9),
    lease_s=st.integers(6, 65),
    woken=st.booleans(),
)


@given(messages)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    text = message_text(message)
    assert message_of(text) == message
    assert text.isascii()
    assert len(text) < 500


@given(messages, st.integers(1, 10**6), moments)
def test_a_message_of_a_span_comes_back_as_it_was(message: Message, missed: int, until: datetime) -> None:
    span = Message(
        job_id=message.job_id,
        scheduled_for=message.scheduled_for,
        revision=message.revision,
        fence=0,
        lease_s=65,
        skip="catch_up",
        missed=missed,
        missed_until=until,
    )
    assert message_of(message_text(span)) == span


GOOD = {"job_id": "a", "scheduled_for": "2026-11-30T12:00:00Z", "revision": 1, "fence": 0, "lease_s": 65}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", ["missing", None, [], {}, "x"])
def test_c51_a_bad_or_missing_field_is_a_bad_message(name: str, value: object) -> None:
    if name == "job_id" and value == "x":
        return
    body = {k: v for k, v in GOOD.items() if k != name or value != "missing"}
    if value != "missing":
        body[name] = value  # type: ignore[assignment]
    with pytest.raises(BadMessageError, match="not a message of this queue"):
        message_of(json.dumps(body))


@pytest.mark.parametrize("body", ["", "no", "[]", "null", "5", '"', "[" * 100_000, '{"job_id":"a"', "\ufeff{}"])
def test_c51_a_body_that_is_no_object_is_a_bad_message(body: str) -> None:
    with pytest.raises(BadMessageError):
        message_of(body)


def test_a_later_versions_extra_field_is_passed_over() -> None:
    assert message_of(json.dumps(GOOD | {"later": True})).job_id == "a"


@given(st.timedeltas(timedelta(days=-1), timedelta(days=1)))
def test_c49_a_delay_is_0_to_900_whole_seconds_and_never_early(ahead: timedelta) -> None:
    delay = delay_s(NOON + ahead, NOON)
    assert type(delay) is int
    assert 0 <= delay <= 900
    if timedelta(0) <= ahead <= timedelta(seconds=900):
        assert timedelta(0) <= timedelta(seconds=delay) - ahead < timedelta(seconds=1)


@given(st.floats(-1e9, 1e9))
def test_c49_a_visibility_is_whole_seconds_within_12_hours_of_the_receipt(seconds: float) -> None:
    hidden = hidden_s(seconds)
    assert type(hidden) is int
    assert 0 <= hidden <= MAX_HIDE_S
    assert MAX_HIDE_S + 900 <= 43_200  # a run of the longest timeout may come before it
    if 0 <= seconds <= MAX_HIDE_S:
        assert seconds <= hidden <= seconds + 1


def test_the_time_of_the_send_counts_and_not_that_of_the_tick(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    message = Message(job_id="a", scheduled_for=START + timedelta(seconds=60), revision=1, fence=0, lease_s=65)
    clock.advance(50)
    world.executor.queue.send([message] * 3)
    assert messages_waiting(aws)["delayed"] == 3
    clock.advance(11)
    assert messages_waiting(aws)["visible"] == 3


def test_nothing_to_send_or_to_hide_makes_no_request(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.executor.queue.send([])
    world.executor.queue.hide([])
