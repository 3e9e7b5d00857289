"""Schedules as they run: each slot once, at its time, across DST, jitter and the borders of claims."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.model.job import Retry
from tests.support import calls, faults
from tests.support.aws import Aws
from tests.support.clocks import START, ManualClock
from tests.support.world import World, failure


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_recurring_job_fires_at_each_slot_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="* * * * *")
    world.pass_time(420, step_s=60)
    assert world.target.slots("a") == [START + timedelta(minutes=k) for k in range(1, 8)]
    assert [called_at for _, called_at in world.target.calls] == world.target.slots("a")
    assert set(world.statuses("a")) == {"succeeded"}


@pytest.mark.parametrize(
    ("cron", "start", "expected"),
    [
        # New York, 2027: clocks go from 02:00 to 03:00 on 14 March, and from 02:00 back to 01:00 on 7 November.
        ("30 2 * * *", "2027-03-12T12:00:00", ["2027-03-13T07:30:00", "2027-03-14T07:00:00", "2027-03-15T06:30:00"]),
        ("30 1 * * *", "2027-11-05T12:00:00", ["2027-11-06T05:30:00", "2027-11-07T05:30:00", "2027-11-08T06:30:00"]),
    ],
    ids=["gap: once, at its end", "overlap: once, at the first pass"],
)
def test_a_daily_job_through_a_change_of_the_clocks(
    aws: Aws, clock: ManualClock, cron: str, start: str, expected: list[str]
) -> None:
    clock.set(utc(start))
    world = World(aws, clock)
    world.tick()
    world.submit(job_id="a", cron=cron, timezone="America/New_York", catch_up="all")
    for moment in expected:
        world.clock.set(utc(moment) - timedelta(seconds=100))
        (lease,) = world.items("lease")
        with calls.unseen():  # as if the ticks of the hours between had been
            watermark = {"watermark": {"S": f"{clock.now():%Y-%m-%dT%H:%M:00}"}}
            aws.dynamodb.put_item(TableName=aws.table, Item=lease | watermark)
        world.tick()
        world.clock.set(utc(moment))
        world.deliver()
        world.clock.advance(1)
        world.deliver()
    assert world.target.slots("a") == [utc(moment) for moment in expected]


def test_jitter_moves_each_slot_and_keeps_it(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/5 * * * *", jitter_s=120)
    world.pass_time(1320, step_s=30)
    slots = world.target.slots("a")
    base = [utc("2026-11-30T12:00:00") + timedelta(minutes=5 * k) for k in range(5)]
    offsets = [int((slot - start).total_seconds()) for slot, start in zip(slots, base, strict=False)]
    assert len(slots) >= 4
    assert all(0 <= offset <= 120 for offset in offsets)
    assert len(set(offsets)) > 1
    assert all(called_at >= call.scheduled_for for call, called_at in world.target.calls)
    assert set(world.statuses("a")) == {"succeeded"}


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    attempt=st.sampled_from([1, 2, 5, 19]),
    retry=st.builds(
        Retry,
        max_attempts=st.just(20),
        base_s=st.sampled_from([0, 0.001, 2, 900, 604_800]),
        factor=st.sampled_from([1, 2, 10]),
        max_s=st.sampled_from([0, 1, 900, 43_200, 604_800]),
    ),
    fraction=st.floats(0, 1),
)
def test_c41_the_visibility_asked_for_is_the_backoff_within_sqs_limits(
    aws: Aws, clock: ManualClock, attempt: int, retry: Retry, fraction: float
) -> None:
    clock.set(clock.now() + timedelta(days=1))
    world = World(aws, clock)
    world.fraction = fraction
    world.target.script = lambda call: failure()
    job_id = world.submit(
        run_at=clock.now().isoformat(),
        max_attempts=retry.max_attempts,
        base_s=retry.base_s,
        max_s=retry.max_s,
        factor=retry.factor,
    ).job.job_id
    messages = [replace(one, sent_at=None) for one in world.receive()]  # however long the waits: not worn (test_waits)
    with faults.logging() as log:
        for made in range(1, attempt + 1):
            world.executor.run(messages)
            run = world.runs(job_id)[0]
            assert run.attempt == made
            assert run.retry_at is not None
            wait_s = (run.retry_at - clock.now()).total_seconds()
            assert 0 <= wait_s <= retry.max_s
            hidden = log.of("sqs:ChangeMessageVisibilityBatch")[-1].asked["Entries"][0]["VisibilityTimeout"]
            assert hidden == min(39_600, -(-wait_s // 1))
            clock.set(run.retry_at)
    with calls.unseen():
        aws.sqs.purge_queue(QueueUrl=aws.queue_url)
