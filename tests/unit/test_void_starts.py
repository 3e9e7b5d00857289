"""When a start is void, and whether its occurrence comes again: none is lost by it, and none is promised twice (I1)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.job import Job, JobStatus, Schedule
from shared.model.message import Message
from shared.model.run import Run, RunStatus
from shared.rules import changes
from shared.rules.schedules import first_slot, read_schedule, slots
from shared.rules.void_starts import comes_again, is_expired, may_come_again, void_reason
from tests.support.jobs import a_job

START = datetime(2026, 11, 30, 11, 58, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
SCHEDULES = st.sampled_from(
    [
        {"every": "7s"},
        {"every": "90s"},
        {"every": "1h", "jitter_s": 900},
        {"cron": "* * * * *"},
        {"cron": "*/5 * * * *", "jitter_s": 200},
        {"cron": "* * * * *", "end_at": "2026-11-30T12:31:00Z"},
        {"every": "45s", "start_at": "2026-11-30T12:10:00.5Z", "end_at": "2026-11-30T12:40:00Z"},
    ]
)
AFTER_S = st.integers(0, 400) | st.integers(0, 4000)


def job_of(schedule: Schedule, **more: object) -> Job:
    return a_job(schedule, START, **{"due_at": first_slot(schedule, "a", START), **more})


def recurring(**fields: object) -> Schedule:
    return read_schedule(now=START, job_id="a", **fields)  # type: ignore[arg-type]


def one_off(after_s: int = 60) -> Schedule:
    return read_schedule(now=START, run_at=(START + timedelta(seconds=after_s)).isoformat())


def run_of(scheduled_for: datetime, **more: object) -> Run:
    made = Run(
        job_id="a",
        scheduled_for=scheduled_for,
        status=RunStatus.RUNNING,
        revision=1,
        attempt=1,
        attempts=(),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def slots_between(schedule: Schedule, after: datetime, until: datetime) -> set[datetime]:
    return set(slots(schedule, "a", after, until, 10**5))


@pytest.mark.parametrize(
    ("status", "revision", "message_revision", "reason"),
    [
        ("scheduled", 1, 1, None),
        ("scheduled", 2, 1, "rescheduled"),
        ("scheduled", 1, 2, "rescheduled"),
        ("paused", 2, 1, "paused"),
        ("paused", 2, 2, "paused"),
        ("cancelled", 2, 1, "cancelled"),
        ("cancelled", 1, 1, "cancelled"),
    ],
)
def test_why_a_start_of_the_schedule_is_void(
    status: str, revision: int, message_revision: int, reason: str | None
) -> None:
    job = job_of(one_off(), status=JobStatus(status), revision=revision)
    message = Message(job_id="a", scheduled_for=START, revision=message_revision, fence=0, lease_s=65)
    assert void_reason(job, run_of(START, revision=message_revision), message) == reason


@pytest.mark.parametrize(
    ("status", "first_revision", "run_revision", "reason"),
    [
        ("scheduled", 1, 1, None),  # the job is at revision 9: changed since, many times
        ("paused", 1, 1, None),
        ("scheduled", 5, 5, None),
        ("scheduled", 5, 4, "cancelled"),  # it was asked of an earlier job of this id
        ("paused", 5, 4, "cancelled"),
        ("cancelled", 1, 9, "cancelled"),
    ],
)
def test_a_run_that_was_asked_for_stands_beside_the_schedule(
    status: str, first_revision: int, run_revision: int, reason: str | None
) -> None:
    job = job_of(one_off(), status=JobStatus(status), revision=9, first_revision=first_revision)
    message = Message(job_id="a", scheduled_for=START, revision=run_revision, fence=0, lease_s=65)
    assert void_reason(job, run_of(START, revision=run_revision, requested_at=START), message) == reason


@given(SCHEDULES, SCHEDULES, AFTER_S)
def test_under_a_new_schedule_exactly_what_that_brings_comes_again(
    old: dict[str, str], new: dict[str, str], after_s: int
) -> None:
    job, now = job_of(recurring(**old)), START + timedelta(seconds=after_s)
    spec = replace(job.spec, schedule=recurring(**new))
    changed = changes.with_spec(job, spec, now, None)
    until = now + timedelta(seconds=900)
    brought = slots_between(spec.schedule, changed.changed_at, until)
    for slot in slots_between(job.spec.schedule, now - timedelta(seconds=900), until):
        assert comes_again(changed, slot) is (slot in brought)
        assert may_come_again(changed, slot) is (slot > changed.changed_at)


@given(SCHEDULES, AFTER_S, st.integers(-900, 900))
def test_of_a_recurring_job_a_resume_may_leave_out_what_the_pause_made_void(
    fields: dict[str, str], after_s: int, slot_s: int
) -> None:
    paused = changes.paused(job_of(recurring(**fields), due_at=None), START + timedelta(seconds=after_s))
    slot = paused.changed_at + timedelta(seconds=slot_s)
    assert not comes_again(paused, slot)
    assert may_come_again(paused, slot) is (slot_s > 0)
    assert comes_again(changes.resumed(paused), slot) is (
        slot_s > 0 and slot in slots_between(paused.spec.schedule, slot - INSTANT, slot)
    )


@given(st.integers(-900, 900), st.integers(0, 1800))
def test_the_one_run_of_a_one_off_comes_again_after_a_pause_and_a_resume(run_s: int, after_s: int) -> None:
    """Also when it was due before the pause, or before the job was submitted."""
    job = job_of(one_off(run_s), due_at=None)
    paused = changes.paused(job, START + timedelta(seconds=after_s))
    slot = START + timedelta(seconds=run_s)
    for there in (job, paused, changes.resumed(paused)):
        assert comes_again(there, slot)
        assert may_come_again(there, slot)
        assert not comes_again(there, slot + INSTANT)


@given(st.integers(-900, 900), st.integers(1, 900), st.integers(0, 1800))
def test_the_old_time_of_a_one_off_does_not_come_again(run_s: int, later_s: int, after_s: int) -> None:
    job, now = job_of(one_off(run_s), due_at=None), START + timedelta(seconds=after_s)
    moved = changes.with_spec(job, replace(job.spec, schedule=one_off(run_s + later_s)), now, None)
    slot = START + timedelta(seconds=run_s)
    assert not comes_again(moved, slot)
    assert not comes_again(changes.paused(moved, now), slot)
    assert may_come_again(moved, slot) is (slot > now)  # it may be moved back
    assert may_come_again(moved, slot + timedelta(seconds=later_s))


@given(SCHEDULES | st.just({}), AFTER_S, st.integers(-900, 900))
def test_nothing_of_a_cancelled_job_comes_again_unless_it_is_submitted_anew(
    fields: dict[str, str], after_s: int, slot_s: int
) -> None:
    now = START + timedelta(seconds=after_s)
    slot = now + timedelta(seconds=slot_s)
    job = changes.cancelled(job_of(recurring(**fields) if fields else one_off(after_s + slot_s)), now)
    assert not comes_again(job, slot)
    assert may_come_again(job, slot) is (slot_s > 0)


def test_a_job_that_is_gone_brings_nothing_but_may_be_submitted_anew() -> None:
    assert not comes_again(None, START)
    assert may_come_again(None, START)


@pytest.mark.parametrize(
    ("deadline_s", "attempt", "late", "expired"),
    [
        (30, 1, timedelta(seconds=30), False),
        (30, 1, timedelta(seconds=30) + INSTANT, True),
        (30, 2, timedelta(days=1), False),  # it was begun in time
        (1, 1, timedelta(0), False),
        (None, 1, timedelta(days=300), False),
    ],
)
def test_expired(deadline_s: int | None, attempt: int, late: timedelta, expired: bool) -> None:
    made = job_of(one_off())
    job = replace(made, spec=replace(made.spec, deadline_s=deadline_s))
    assert is_expired(job, run_of(START, attempt=attempt), START + late) is expired
