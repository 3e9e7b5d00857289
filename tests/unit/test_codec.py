"""Items and what they hold: each value comes back as it was, and an ordinary item is small."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.job import Job, JobSpec, JobStatus, Retry, Schedule, Target
from shared.model.run import Attempt, Outcome, Run, RunStatus
from shared.store import keys
from shared.store.codec import (
    attempts_value,
    due_of,
    is_expired,
    job_item,
    job_of,
    payload_item,
    read_all,
    run_of,
    schedule_of,
    schedule_text,
    span_of,
)
from tests.support.aws_rules_items import item_problems
from tests.support.jobs import a_job

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
schedules = st.builds(
    Schedule,
    run_at=st.none() | moments,
    cron=st.none() | texts,
    every=st.none() | texts,
    every_s=st.none() | st.integers(1, 10**9),
    timezone=st.sampled_from(["UTC", "Europe/London"]),
    anchor=st.none() | moments,
    start_at=st.none() | moments,
    end_at=st.none() | moments,
    max_runs=st.none() | st.integers(1, 10**9),
    jitter_s=st.integers(0, 86_400),
    dst_gap=st.sampled_from(["run", "skip"]),
    catch_up=st.sampled_from(["latest", "all", "skip"]),
)
specs = st.builds(
    JobSpec,
    job_id=st.just("a"),
    name=st.none() | texts,
    group=st.none() | texts,
    tags=st.dictionaries(texts, texts, max_size=3),
    target=st.builds(Target, kind=st.just("python"), params=st.dictionaries(texts.filter("kind".__ne__), texts)),
    payload=texts,
    schedule=schedules,
    retry=st.builds(
        Retry,
        max_attempts=st.integers(1, 100),
        base_s=st.integers(0, 10**6) | st.floats(0, 1e6),
        factor=st.integers(1, 10) | st.floats(1, 10),
        max_s=st.integers(0, 10**6) | st.floats(0, 1e6),
    ),
    timeout_s=st.integers(1, 885),
    deadline_s=st.none() | st.integers(1, 10**7),
)
jobs = st.builds(
    Job,
    job_id=st.just("a"),
    spec=specs,
    status=st.sampled_from(JobStatus),
    due_at=st.none() | moments,
    revision=st.integers(1, 10**9),
    version=st.integers(1, 10**9),
    fence=st.integers(0, 10**9),
    created_at=moments,
    changed_at=moments,
    runs_claimed=st.integers(0, 10**9),
    claimed_until=st.none() | moments,
    payload_id=st.none() | st.just("p1"),
)


@given(jobs, st.none() | moments)
def test_a_job_comes_back_as_it_was(job: Job, ttl: datetime | None) -> None:
    item = job_item(job, 3, ttl)
    assert job_of(item, job.spec.payload) == job
    assert not list(item_problems(item))
    in_index = keys.DUE_KEY in item
    assert in_index == (job.status is JobStatus.SCHEDULED and job.due_at is not None)  # I8
    if job.due_at is not None:
        due = due_of(item)
        assert (due.schedule, due.due_at, due.revision) == (job.spec.schedule, job.due_at, job.revision)
        assert (due.timeout_s, due.runs_claimed) == (job.spec.timeout_s, job.runs_claimed)


@given(schedules)
def test_a_schedule_comes_back_as_it_was(schedule: Schedule) -> None:
    assert schedule_of(schedule_text(schedule)) == schedule


def test_what_is_default_is_left_out_of_a_schedule() -> None:
    assert schedule_text(Schedule(cron="0 9 * * *")) == '{"cron":"0 9 * * *"}'


def attempt(number: int, **fields: Any) -> Attempt:
    made = Attempt(
        attempt=number,
        worker_id=f"w{number}",
        started_at=NOON + timedelta(seconds=number),
        lease_expires_at=NOON + timedelta(seconds=number + 65),
        finished_at=NOON + timedelta(seconds=number + 1),
        outcome=Outcome.FAILED,
        error="é" * 256,
    )
    return replace(made, **fields)


@pytest.mark.parametrize("count", [0, 1, 20, 21, 57])
def test_the_last_20_attempts_are_kept_with_their_numbers(count: int) -> None:
    attempts = tuple(attempt(number) for number in range(1, count + 1))
    item = {
        **keys.run_key("a", NOON),
        "status": {"S": "failed"},
        "revision": {"N": "1"},
        "attempt": {"N": str(count)},
        "attempts": attempts_value(attempts),
    }
    run = run_of(item)
    assert run == Run(
        job_id="a",
        scheduled_for=NOON,
        status=RunStatus.FAILED,
        revision=1,
        attempt=count,
        attempts=attempts[-20:],
    )
    assert len(json.dumps(item, ensure_ascii=False).encode()) < 20_000


def test_an_open_attempt_has_neither_end_nor_outcome() -> None:
    opened = attempt(1, finished_at=None, outcome=None, error=None)
    (value,) = attempts_value((opened,))["L"]
    assert set(value["M"]) == {"worker", "started", "lease"}


@given(moments)
def test_keys_of_runs_sort_as_time_and_name_their_moment(moment: datetime) -> None:
    later = moment + timedelta(microseconds=1)
    assert keys.RUN_PREFIX < keys.run_sk(moment) < keys.run_sk(later) < keys.RUNS_END
    assert keys.scheduled_for_of(keys.run_sk(moment)) == moment
    item = keys.run_key("a", moment) | {"missed_until": {"S": keys.run_sk(later).removeprefix("run#")}}
    assert span_of(item) == (moment, later)
    assert span_of(keys.run_key("a", moment)) == (moment, moment)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-30T12:00:00+00:00", "2026-11-30T12:00#3"),
        ("2026-11-30T12:00:59.999999+00:00", "2026-11-30T12:00#3"),
        ("2026-11-30T13:30:00+05:30", "2026-11-30T08:00#3"),
    ],
)
def test_a_bucket_is_a_utc_minute_of_a_shard(moment: str, expected: str) -> None:
    assert keys.due_key(datetime.fromisoformat(moment), 3) == expected


def test_a_payload_apart_is_named_in_the_job_and_not_kept_in_it() -> None:
    job = a_job(Schedule(cron="* * * * *"), NOON, payload_id="p1")
    job = replace(job, spec=replace(job.spec, payload='"long"'))
    item = job_item(job, 0)
    assert "payload" not in item
    apart = payload_item("a", "p1", job.spec.payload, NOON)
    assert (apart["sk"]["S"], apart["payload"]["S"]) == ("payload#p1", '"long"')


def test_an_expired_item_is_known() -> None:
    item = {"ttl": {"N": str(int(NOON.timestamp()))}}
    assert not is_expired(item, NOON)
    assert is_expired(item, NOON + timedelta(seconds=1))
    assert not is_expired({}, NOON)


def test_items_that_cannot_be_read_are_set_apart() -> None:
    good, bad = {"n": {"N": "1"}}, {"n": {"S": "one"}}
    assert read_all([good, bad, good], lambda item: int(item["n"]["N"])) == ([1, 1], [bad])
