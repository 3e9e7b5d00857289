"""plan: what one claim takes. No slot is lost or taken twice, whatever the ticks and horizons (I1)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.job import Due, Schedule
from shared.rules import plan as rules
from shared.rules.plan import MAX_OCCURRENCES, Plan, is_slot, plan
from shared.rules.schedules import first_slot, read_schedule, slots

START = datetime(2026, 11, 30, 11, 58, tzinfo=UTC)


def due(schedule: Schedule, due_at: datetime, runs_claimed: int = 0) -> Due:
    return Due(job_id="a", schedule=schedule, due_at=due_at, revision=1, timeout_s=60, runs_claimed=runs_claimed)


def recurring(**fields: object) -> Schedule:
    return read_schedule(now=START, job_id="a", **fields)  # type: ignore[arg-type]


def covered(taken: Plan, schedule: Schedule) -> list[datetime]:
    """The slots that a plan takes, those of a recorded span one by one."""
    found: list[datetime] = []
    for occurrence in taken.occurrences:
        found.append(occurrence.scheduled_for)
        if occurrence.missed_until is not None:
            found += slots(schedule, "a", occurrence.scheduled_for, occurrence.missed_until, 100_000)
            assert occurrence.missed == len(found)
    return found


schedules = st.sampled_from(
    [
        {"every": "7s"},
        {"every": "90s"},
        {"every": "1h", "jitter_s": 900},
        {"cron": "* * * * *"},
        {"cron": "*/5 * * * *", "jitter_s": 200},
        {"cron": "0 9 * * *", "timezone": "America/New_York"},
        {"cron": "*/20 1-3 * * *", "timezone": "Europe/London"},
        {"cron": "30 */2 * * * *"},
        {"cron": "H H * * *"},
        {"every": "60s", "max_runs": 7},
        {"cron": "* * * * *", "end_at": "2026-11-30T12:31:00Z"},
        {"every": "45s", "start_at": "2026-11-30T12:10:00Z", "end_at": "2026-11-30T12:40:00Z", "max_runs": 20},
    ]
)
catch_ups = st.sampled_from(["latest", "all", "skip"])
# Seconds from one tick to the next: on time, early, after an outage.
gaps = st.lists(
    st.one_of(st.integers(1, 90), st.integers(1, 4000), st.integers(10_000, 40_000)), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=60)
@given(schedules, catch_ups, gaps, st.integers(0, 840))
def test_i1_successive_claims_lose_no_slot_and_take_none_twice(
    fields: dict[str, str], catch_up: str, waits: list[int], horizon_s: int
) -> None:
    schedule = recurring(catch_up=catch_up, **fields)
    due_at, count, now = first_slot(schedule, "a", START), 0, START
    taken: list[datetime] = []
    late: list[list[datetime]] = []
    for wait in waits:
        now += timedelta(seconds=wait)
        if due_at is None or due_at > now + timedelta(seconds=horizon_s):
            continue
        done = plan(due(schedule, due_at, count), now, horizon_s)
        new = covered(done, schedule)
        assert new[0] == due_at
        taken += new
        run = [one.scheduled_for for one in done.occurrences if one.skip is None]
        late.append([slot for slot in run if slot < now - timedelta(seconds=max(60, 120 - horizon_s))])
        assert done.claimed_until == new[-1]
        assert done.runs_claimed == count + len(run)
        assert len(run) <= MAX_OCCURRENCES
        assert run == [] or run[-1] == due_at or run[-1] <= now + timedelta(seconds=horizon_s)
        assert done.next_due_at is None or done.next_due_at > new[-1]
        if done.next_due_at is not None and len(run) < MAX_OCCURRENCES:
            assert done.next_due_at > now + timedelta(seconds=horizon_s)
        due_at, count = done.next_due_at, done.runs_claimed
    if taken:
        assert taken == slots(schedule, "a", START, taken[-1], len(taken) + 1)
    assert schedule.max_runs is None or count <= schedule.max_runs
    if catch_up == "latest":
        assert all(len(runs) <= 1 for runs in late)
    if catch_up == "skip":
        assert all(len(runs) == 0 for runs in late)


@given(st.integers(0, 10**9), st.integers(0, 840))
def test_a_one_off_is_taken_once_at_its_time(late_s: int, horizon_s: int) -> None:
    schedule = read_schedule(now=START, run_at="2026-11-30T12:00:00.5Z")
    done = plan(due(schedule, schedule.run_at or START), START + timedelta(seconds=late_s), horizon_s)
    assert [one.scheduled_for for one in done.occurrences] == [schedule.run_at]
    assert (done.next_due_at, done.runs_claimed) == (None, 1)


@pytest.mark.parametrize(("catch_up", "first", "runs"), [("latest", -60, 61), ("skip", -59, 60), ("all", None, 1000)])
def test_c33_what_is_more_than_a_minute_late_counts_as_missed(catch_up: str, first: int | None, runs: int) -> None:
    schedule = recurring(every="1s", catch_up=catch_up)
    now = START + timedelta(hours=3)
    run = [
        one.scheduled_for
        for one in plan(due(schedule, START + timedelta(seconds=1)), now, 60).occurrences
        if one.skip is None and one.scheduled_for <= now
    ]
    assert len(run) == runs
    assert run[0] == (START + timedelta(seconds=1) if first is None else now + timedelta(seconds=first))


@pytest.mark.parametrize(
    ("schedule", "catch_up", "missed"),
    [
        ({"cron": "* * * * *"}, "latest", 20_158),
        ({"cron": "* * * * *"}, "skip", 20_159),
        ({"every": "1s"}, "latest", 100_000),  # the count has a limit, the span has none
        ({"cron": "* * * * * *"}, "skip", 100_000),
    ],
)
def test_c33_14_days_are_one_span_and_bounded_work(
    schedule: dict[str, str], catch_up: str, missed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(*args: object) -> list[datetime]:
        found = slots(*args)  # type: ignore[arg-type]
        made.append(len(found))
        return found

    monkeypatch.setattr(rules, "slots", counted)
    read = recurring(catch_up=catch_up, **schedule)
    first = first_slot(read, "a", START)
    assert first is not None
    done = plan(due(read, first), START + timedelta(days=14), 300)
    assert sum(made) <= 400
    (span,) = [one for one in done.occurrences if one.skip]
    assert (span.scheduled_for, span.missed) == (first, missed)
    assert span.missed_until is not None
    assert span.missed_until >= START + timedelta(days=14, minutes=-3)
    assert done.next_due_at is not None
    assert done.next_due_at > START + timedelta(days=14)


def test_max_runs_counts_runs_not_what_was_missed() -> None:
    schedule = recurring(cron="* * * * *", max_runs=3, catch_up="skip")
    done = plan(due(schedule, START + timedelta(minutes=1)), START + timedelta(hours=1), 60)
    assert done.runs_claimed == 2  # 12:58 and 12:59; 12:57 is a minute late
    assert done.next_due_at is not None
    done = plan(due(schedule, START + timedelta(minutes=1)), START + timedelta(hours=1, seconds=1), 0)
    assert done.runs_claimed == 2
    assert done.next_due_at is not None


@pytest.mark.parametrize("horizon_s", [0, 30, 59, 60, 300])
def test_no_occurrence_is_missed_because_two_minutes_ticks_lie_far_apart(horizon_s: int) -> None:
    """A tick at 12:00:00 and the next at 12:01:59: due at the one's horizon, or a moment after it."""
    schedule = recurring(cron="* * * * * *", catch_up="skip")
    tick = START + timedelta(minutes=2)
    first = tick + timedelta(seconds=horizon_s + 1)
    done = plan(due(schedule, first), tick + timedelta(seconds=119), horizon_s)
    assert done.occurrences[0].scheduled_for == first
    assert done.occurrences[0].skip is None


def test_more_than_a_claim_takes_goes_on_where_it_stopped() -> None:
    schedule = recurring(every="1s", catch_up="all")
    now = START + timedelta(seconds=1500)
    first = plan(due(schedule, START + timedelta(seconds=1)), now, 0)
    assert len(first.occurrences) == 1000
    assert first.next_due_at == START + timedelta(seconds=1001)
    second = plan(due(schedule, first.next_due_at, first.runs_claimed), now, 0)
    assert (len(second.occurrences), second.runs_claimed) == (500, 1500)


@given(schedules, st.integers(0, 10**6))
def test_is_slot_is_true_for_slots_alone(fields: dict[str, str], offset_us: int) -> None:
    schedule = recurring(**fields)
    slot = first_slot(schedule, "a", START)
    assert slot is not None
    assert is_slot(schedule, "a", slot)
    near = slot + timedelta(microseconds=offset_us % 999_999 + 1)
    assert not is_slot(schedule, "a", near)
