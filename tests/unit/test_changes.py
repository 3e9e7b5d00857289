"""What a user's word makes of a job: no slot is lost, taken twice or counted twice by pauses and new schedules (I1)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.job import Due, Job, JobStatus, Schedule
from shared.rules import changes
from shared.rules.plan import Plan, plan
from shared.rules.schedules import first_slot, next_slot, read_schedule, slots
from tests.support.jobs import a_job

START = datetime(2026, 11, 30, 11, 58, tzinfo=UTC)
SCHEDULES = st.sampled_from(
    [
        {"every": "7s"},
        {"every": "90s", "max_runs": 6},
        {"every": "1h", "jitter_s": 900},
        {"cron": "* * * * *", "max_runs": 9},
        {"cron": "*/5 * * * *", "jitter_s": 200},
        {"cron": "H */2 * * *", "timezone": "Europe/London"},
        {"cron": "* * * * *", "end_at": "2026-11-30T12:31:00Z"},
        {"every": "45s", "start_at": "2026-11-30T12:10:00.5Z", "end_at": "2026-11-30T12:40:00Z", "max_runs": 20},
    ]
)
# What happens, each after so many seconds: a tick, or a pause and a resume.
DOES = st.lists(
    st.tuples(st.sampled_from(["tick", "tick", "pause", "resume"]), st.integers(0, 400) | st.integers(0, 20_000)),
    max_size=14,
)


def job_of(schedule: Schedule) -> Job:
    due_at = first_slot(schedule, "a", START)
    assert due_at is not None
    return a_job(schedule, START, due_at=due_at)


def recurring(**fields: object) -> Schedule:
    return read_schedule(now=START, job_id="a", **fields)  # type: ignore[arg-type]


def claimed(job: Job, now: datetime, horizon_s: int) -> tuple[Job, Plan | None]:
    """The job as a tick leaves it."""
    if job.status is not JobStatus.SCHEDULED or job.due_at is None or job.due_at > now + timedelta(seconds=horizon_s):
        return job, None
    due = Due(
        job_id="a",
        schedule=job.spec.schedule,
        due_at=job.due_at,
        revision=job.revision,
        timeout_s=60,
        runs_claimed=job.runs_claimed,
    )
    done = plan(due, now, horizon_s)
    return replace(job, due_at=done.next_due_at, runs_claimed=done.runs_claimed, claimed_until=done.claimed_until), done


@settings(deadline=None, max_examples=150)
@given(SCHEDULES, st.sampled_from(["latest", "all", "skip"]), DOES, st.sampled_from([0, 60, 300, 840]))
def test_i1_over_pauses_no_slot_is_lost_taken_twice_or_counted_twice(
    fields: dict[str, str], catch_up: str, does: list[tuple[str, int]], horizon_s: int
) -> None:
    """Each claim's occurrences stand until a change makes void what lies behind it."""
    job, now = job_of(recurring(catch_up=catch_up, **fields)), START
    schedule = job.spec.schedule
    runs: list[datetime] = []  # claimed to run, and not void
    covered: list[datetime] = []  # these, and what was recorded as missed
    for what, wait in (*does, ("resume", 0), ("tick", 0)):
        now += timedelta(seconds=wait)
        if what == "pause" and job.status is JobStatus.SCHEDULED:
            before = job
            job = changes.paused(job, now)
            assert (job.revision, job.version) == (before.revision + 1, before.version + 1)
            assert job.changed_at <= now
            runs = [slot for slot in runs if slot <= job.changed_at]
            covered = [slot for slot in covered if slot <= job.changed_at]
        elif what == "resume" and job.status is JobStatus.PAUSED:
            job = changes.resumed(job)
            assert job.runs_claimed == len(runs)
            assert job.claimed_until is None or covered == [] or job.claimed_until == covered[-1]
            # What comes next is the first that is neither claimed nor over, unless there are as many as may be.
            following = next_slot(schedule, "a", covered[-1] if covered else START)
            most = schedule.max_runs
            assert job.due_at == (None if most is not None and len(runs) >= most else following)
        elif what == "tick":
            job, done = claimed(job, now, horizon_s)
            for one in done.occurrences if done else ():
                covered.append(one.scheduled_for)
                if one.missed_until is not None:
                    covered += slots(schedule, "a", one.scheduled_for, one.missed_until, 10**6)
                if one.skip is None:
                    runs.append(one.scheduled_for)
    assert covered == (slots(schedule, "a", START, covered[-1], len(covered) + 1) if covered else [])
    assert job.runs_claimed == len(runs)
    assert schedule.max_runs is None or len(runs) <= schedule.max_runs


@given(st.integers(-4000, 4000), st.booleans(), st.integers(0, 5000))
def test_a_paused_one_off_is_due_again_at_its_own_time(due_s: int, is_claimed: bool, paused_s: int) -> None:
    schedule = read_schedule(now=START, run_at=(START + timedelta(seconds=due_s)).isoformat())
    job = job_of(schedule)
    if is_claimed:
        job = replace(job, due_at=None, runs_claimed=1, claimed_until=schedule.run_at)
    again = changes.resumed(changes.paused(job, START + timedelta(seconds=paused_s)))
    assert (again.due_at, again.runs_claimed, again.claimed_until) == (schedule.run_at, 0, None)
    assert (again.status, again.revision, again.version) == (JobStatus.SCHEDULED, 3, 3)


@given(SCHEDULES, SCHEDULES, st.integers(0, 100_000), st.integers(0, 840))
def test_a_new_schedule_counts_from_its_change(
    old: dict[str, str], new: dict[str, str], after_s: int, horizon_s: int
) -> None:
    now = START + timedelta(seconds=after_s)
    job, _ = claimed(job_of(recurring(**old)), START, horizon_s)
    spec = replace(job.spec, schedule=recurring(**new))
    changed = changes.with_spec(job, spec, now, None)
    if spec == job.spec:
        assert (changed.revision, changed.due_at) == (job.revision, job.due_at)
        return
    assert (changed.revision, changed.version, changed.changed_at) == (2, 2, now)
    assert (changed.runs_claimed, changed.claimed_until) == (0, None)
    assert changed.due_at == first_slot(spec.schedule, "a", now)


@settings(deadline=None)
@given(SCHEDULES, st.integers(0, 100_000), st.integers(0, 840))
def test_i1_what_a_new_schedule_drops_is_all_that_was_due_and_not_claimed(
    fields: dict[str, str], after_s: int, horizon_s: int
) -> None:
    now = START + timedelta(seconds=after_s)
    job, _ = claimed(job_of(recurring(**fields)), START, horizon_s)
    spec = replace(job.spec, schedule=recurring(every="11s"))
    dropped = changes.dropped(job, spec, now)
    due = slots(job.spec.schedule, "a", job.claimed_until or START, now, 10**6) if job.due_at else []
    if not due:
        assert dropped is None
        return
    assert dropped is not None
    assert (dropped.scheduled_for, dropped.skip) == (due[0], "rescheduled")
    assert (dropped.missed or 1, dropped.missed_until or due[0]) == (len(due), due[-1])
    assert changes.dropped(replace(job, status=JobStatus.PAUSED), spec, now) is None
    assert changes.dropped(job, replace(job.spec, payload="1"), now) is None


def test_a_one_off_that_keeps_its_time_drops_nothing() -> None:
    run_at = START - timedelta(hours=1)
    job = job_of(read_schedule(now=START, run_at=run_at.isoformat()))
    again = replace(job.spec, schedule=replace(job.spec.schedule, timezone="Europe/Berlin"))
    other = replace(job.spec, schedule=replace(job.spec.schedule, run_at=START))
    assert changes.dropped(job, again, START) is None
    found = changes.dropped(job, other, START)
    assert found is not None
    assert (found.scheduled_for, found.skip, found.missed) == (run_at, "rescheduled", None)


@pytest.mark.parametrize("catch_up", ["all", "skip"])
def test_how_missed_ones_are_made_up_for_is_no_change_of_when(catch_up: str) -> None:
    job = job_of(recurring(every="90s"))
    spec = replace(job.spec, schedule=replace(job.spec.schedule, catch_up=catch_up))
    changed = changes.with_spec(job, spec, START + timedelta(hours=1), None)
    assert (changed.revision, changed.version, changed.due_at) == (1, 2, job.due_at)
    assert changed.changed_at == START


def test_a_cancelled_job_is_due_no_more() -> None:
    job = changes.cancelled(job_of(recurring(every="90s")), START + timedelta(seconds=5))
    assert (job.status, job.due_at, job.revision) == (JobStatus.CANCELLED, None, 2)
    assert job.changed_at == START + timedelta(seconds=5)


def test_a_change_never_counts_from_before_the_one_that_it_is_made_on() -> None:
    job = changes.with_spec(
        job_of(recurring(every="90s")), job_of(recurring(every="60s")).spec, START + timedelta(seconds=70), None
    )
    slow = START + timedelta(seconds=10)
    assert changes.paused(replace(job, due_at=None), slow).changed_at == job.changed_at
    assert changes.cancelled(job, slow).changed_at == job.changed_at
    assert changes.with_spec(job, job_of(recurring(every="50s")).spec, slow, None).changed_at == job.changed_at
