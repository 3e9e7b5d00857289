"""When something counts as left behind."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.model.job import Job, JobStatus, Schedule
from shared.model.run import Run, RunStatus
from shared.rules.staleness import claimed_long_ago, is_abandoned, is_overdue
from tests.support.jobs import a_job

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def job(schedule: Schedule, **fields: object) -> Job:
    return a_job(schedule, ago(days=2), **fields)


EVERY_HOUR = Schedule(every="1h", every_s=3600, anchor=datetime(2026, 11, 28, 0, 30, tzinfo=UTC))
EVERY_10_MINUTES = replace(EVERY_HOUR, every="10m", every_s=600)


@pytest.mark.parametrize(
    ("due_at", "status", "overdue"),
    [
        (ago(minutes=3), JobStatus.SCHEDULED, False),
        (ago(minutes=3, seconds=1), JobStatus.SCHEDULED, True),
        (ago(days=1), JobStatus.CANCELLED, False),
        (ago(days=1), JobStatus.PAUSED, False),
        (None, JobStatus.SCHEDULED, False),
    ],
)
def test_overdue(due_at: datetime | None, status: JobStatus, overdue: bool) -> None:
    assert is_overdue(job(EVERY_HOUR, due_at=due_at, status=status), NOW) is overdue


def test_claimed_occurrences_of_the_last_three_hours() -> None:
    claimed = claimed_long_ago(job(EVERY_HOUR, claimed_until=NOW + timedelta(minutes=30)), NOW)
    assert claimed == [ago(minutes=150), ago(minutes=90), ago(minutes=30)]


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"claimed_until": ago(minutes=20)}, 16),  # 09:10 to 11:40
        ({"claimed_until": ago(minutes=0)}, 16),  # 11:50 may still be on its way
        ({"claimed_until": ago(minutes=20), "changed_at": ago(minutes=60)}, 4),  # 11:10 to 11:40
        ({"claimed_until": ago(minutes=20), "changed_at": ago(minutes=5)}, 0),
        ({"claimed_until": None}, 0),
        ({"claimed_until": ago(minutes=20), "status": JobStatus.CANCELLED}, 0),
    ],
)
def test_claimed_long_ago_of_a_recurring_job(fields: dict[str, object], count: int) -> None:
    assert len(claimed_long_ago(job(EVERY_10_MINUTES, **fields), NOW)) == count


@pytest.mark.parametrize(
    ("run_at", "changed_at", "due_at", "found"),
    [
        (ago(minutes=15), ago(days=1), None, False),
        (ago(minutes=16), ago(days=1), None, True),
        (ago(days=20), ago(days=21), None, True),
        (ago(days=20), ago(minutes=10), None, False),  # submitted for the past, just now
        (ago(minutes=16), ago(days=1), ago(minutes=16), False),  # not claimed yet
    ],
)
def test_claimed_long_ago_of_a_one_off(
    run_at: datetime, changed_at: datetime, due_at: datetime | None, found: bool
) -> None:
    one_off = job(Schedule(run_at=run_at), changed_at=changed_at, due_at=due_at, claimed_until=run_at)
    assert claimed_long_ago(one_off, NOW) == ([run_at] if found else [])


@pytest.mark.parametrize(
    ("status", "lease", "retry", "abandoned"),
    [
        ("running", ago(minutes=15), None, False),
        ("running", ago(minutes=16), None, True),
        ("failed", None, ago(minutes=15), False),
        ("failed", None, ago(minutes=16), True),
        ("failed", None, NOW + timedelta(hours=1), False),
        ("succeeded", None, None, False),
        ("skipped", None, None, False),
    ],
)
def test_abandoned(status: str, lease: datetime | None, retry: datetime | None, abandoned: bool) -> None:
    run = Run(
        job_id="a",
        scheduled_for=ago(hours=1),
        status=RunStatus(status),
        revision=1,
        attempt=1,
        attempts=(),
        lease_expires_at=lease,
        retry_at=retry,
    )
    assert is_abandoned(run, NOW) is abandoned
