"""The slots of a schedule: in order, none lost or repeated wherever one begins to ask, jittered or as clocks change."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shared.model.errors import DuetimeError, InvalidScheduleError
from shared.model.job import Schedule
from shared.rules import cron, cron_slots
from shared.rules.cron import Fire
from shared.rules.schedules import count_slots, first_slot, latest_slot, next_slot, read_schedule, slots

SECOND = timedelta(seconds=1)
NOW = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)  # the night in which Europe's clocks go back
END = NOW + timedelta(hours=36)
NO_LIMIT = 10**9

CRONS = [
    "*/7 * * * *",
    "0,1,2,30 * * * *",
    "*/20 0-8 * * *",
    "30 2 * * *",
    "0,15,30,45 1-3 * * *",
    "0 */3 * * *",
    "H H(0-3) * * *",
    "0-9 59 23 * * *",
]


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    given: dict[str, Any] = {"end_at": draw(st.sampled_from([None, "2026-10-25T05:00:30Z", "2026-10-25T01:30:00.5Z"]))}
    if draw(st.booleans()):
        given |= {
            "cron": draw(st.sampled_from(CRONS)),
            "timezone": draw(st.sampled_from(["UTC", "Europe/Berlin", "Europe/Lisbon", "Antarctica/Troll"])),
            "jitter_s": draw(st.sampled_from([0, 0, 1, 59, 60, 600, 3600, 86_400])),
            "dst_gap": draw(st.sampled_from(["run", "skip"])),
            "start_at": draw(st.sampled_from([None, "2026-10-25T00:30:00Z", "2026-10-25T00:10:00.25Z"])),
        }
    else:
        every_s = draw(st.integers(400, 50_000))
        given |= {
            "every": f"{every_s}s",
            "jitter_s": draw(st.integers(0, every_s - 1)),
            "start_at": draw(st.sampled_from([None, "2026-10-25T00:30:00Z", "2026-10-25T00:10:00.25Z"])),
        }
    try:
        return read_schedule(now=NOW, job_id="job-1", **given)
    except InvalidScheduleError:
        assume(False)
        raise


def moments(draw: st.DrawFn, all_slots: list[datetime]) -> datetime:
    """Any moment of the span, often just at a slot or next to one."""
    if all_slots and draw(st.booleans()):
        return draw(st.sampled_from(all_slots)) + draw(st.sampled_from([-SECOND, SECOND * 0, SECOND]))
    return NOW + draw(st.integers(0, int((END - NOW).total_seconds()))) * SECOND


@settings(max_examples=200, deadline=None)
@given(schedules(), st.data())
def test_every_question_gives_the_same_slots(schedule: Schedule, data: st.DataObject) -> None:
    every_slot = slots(schedule, "job-1", NOW, END, NO_LIMIT)
    after = data.draw(st.composite(moments)(every_slot))
    until = data.draw(st.composite(moments)(every_slot))
    expected = [slot for slot in every_slot if after < slot <= until]

    assert slots(schedule, "job-1", after, until, NO_LIMIT) == expected
    assert slots(schedule, "job-1", after, until, 3) == expected[:3]
    assert count_slots(schedule, "job-1", after, until, NO_LIMIT) == len(expected)
    assert count_slots(schedule, "job-1", after, until, 3) == min(3, len(expected))
    assert latest_slot(schedule, "job-1", after, until) == (expected[-1] if expected else None)
    following = next_slot(schedule, "job-1", after)
    assert following == next((slot for slot in every_slot if slot > after), following)
    assert following is None or following > after


@settings(max_examples=200, deadline=None)
@given(schedules())
def test_jitter_keeps_each_slot_between_its_base_time_and_the_next(schedule: Schedule) -> None:
    plain = slots(replace(schedule, jitter_s=0), "job-1", NOW, END, NO_LIMIT)
    jittered = [slot for slot in slots(schedule, "job-1", NOW, END, NO_LIMIT) if plain and slot >= plain[0]]
    for base, slot in zip(plain, jittered, strict=False):
        assert timedelta(0) <= slot - base <= schedule.jitter_s * SECOND
    assert len(plain) - len(jittered) in (0, 1), "only the last may be past the end of the span"
    assert all(slot < following for slot, following in zip(jittered, plain[1:], strict=False))
    assert all(earlier < later for earlier, later in pairwise(jittered))
    assert all(slot <= (schedule.end_at or END) for slot in jittered)


def test_jitter_spreads_jobs_and_their_slots_and_is_stable() -> None:
    schedule = read_schedule(now=NOW, cron="0 * * * *", jitter_s=600)
    spread = [first_slot(schedule, f"job-{number}", NOW + SECOND * 600) for number in range(300)]
    offsets = {slot.minute * 60 + slot.second for slot in spread if slot}
    assert len(offsets) > 150
    assert max(offsets) <= 600
    one_job = [slot.minute * 60 + slot.second for slot in slots(schedule, "job-1", NOW, END, 20)]
    assert len(set(one_job)) > 15
    # Kept by every later version: a claimed slot and a planned one must be the same moment.
    assert slots(schedule, "job-1", NOW, END, 2) == [
        datetime(2026, 10, 24, 20, 8, 29, tzinfo=UTC),
        datetime(2026, 10, 24, 21, 8, 19, tzinfo=UTC),
    ]


def test_a_one_off_has_one_slot() -> None:
    schedule = read_schedule(now=NOW, run_at="2026-10-25T00:00:00.5Z")
    at = datetime(2026, 10, 25, 0, 0, 0, 500_000, tzinfo=UTC)
    assert first_slot(schedule, "a", NOW) == at
    assert slots(schedule, "a", NOW, END, 5) == [at]
    assert slots(schedule, "a", NOW, END, 0) == []
    assert next_slot(schedule, "a", at) is None
    assert latest_slot(schedule, "a", NOW, END) == at
    assert latest_slot(schedule, "a", at, END) is None
    assert count_slots(schedule, "a", NOW, at, 5) == 1


@pytest.mark.parametrize("days", [14, 3650])
@pytest.mark.parametrize("jitter_s", [0, 3600])
@pytest.mark.parametrize(
    "given",
    [
        {"cron": "* * * * * *"},
        {"cron": "* * * * *", "timezone": "Africa/Casablanca"},
        {"cron": "0-59 0-59 0-23 * * *", "timezone": "America/New_York"},
        {"cron": "0 9 1W * *", "timezone": "Europe/Berlin"},
        {"every": "1s"},
        {"every": "1d"},
    ],
    ids=str,
)
def test_a_long_outage_is_looked_back_on_in_bounded_time(given: dict[str, Any], jitter_s: int, days: int) -> None:
    jitter_s = 0 if given.get("every") == "1s" else jitter_s
    schedule = read_schedule(now=NOW, jitter_s=jitter_s, **given)
    now = NOW + timedelta(days=days)
    started = time.thread_time()
    latest = latest_slot(schedule, "job-1", NOW, now)
    missed = count_slots(schedule, "job-1", NOW, now, NO_LIMIT)
    assert time.thread_time() - started < 0.05
    assert latest is not None
    assert next_slot(schedule, "job-1", latest) not in (None, latest)
    assert count_slots(schedule, "job-1", NOW, latest, NO_LIMIT) == missed
    assert count_slots(schedule, "job-1", latest, now, NO_LIMIT) == 0


def test_a_second_by_second_schedule_is_counted_to_the_second() -> None:
    schedule = read_schedule(now=NOW, cron="* * * * * *", timezone="Europe/Berlin")
    assert count_slots(schedule, "a", NOW, NOW + timedelta(days=14), NO_LIMIT) == 14 * 86_400
    named = read_schedule(now=NOW, cron="0-59 0-59 0-23 * * *", timezone="Europe/Berlin")
    assert count_slots(named, "a", NOW, NOW + timedelta(days=14), NO_LIMIT) == 14 * 86_400 - 3600  # an hour comes once


@pytest.mark.parametrize("given", [{"cron": "*/5 * * * *", "timezone": "Europe/Berlin"}, {"every": "5m"}])
def test_the_next_slot_is_cheap(given: dict[str, Any]) -> None:
    schedule = read_schedule(now=NOW, **given)
    next_slot(schedule, "job-1", NOW)
    started = time.thread_time()
    for number in range(1000):
        next_slot(schedule, f"job-{number}", NOW)
    assert time.thread_time() - started < 0.1, "100 µs each"


def test_a_next_time_that_is_not_later_is_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = read_schedule(now=NOW, cron="* * * * *")
    stale = Fire(NOW, NOW.replace(tzinfo=None))
    with monkeypatch.context() as broken:
        broken.setattr(cron_slots, "next_fire", lambda *_: stale)
        with pytest.raises(DuetimeError, match="not after it"):
            next_slot(schedule, "a", NOW)
        with pytest.raises(DuetimeError, match="not after it"):
            slots(schedule, "a", NOW, END, 5)
    monkeypatch.setattr(cron, "_wildcard", lambda *_: stale)
    with pytest.raises(DuetimeError, match="not after it"):
        next_slot(schedule, "a", NOW)
