"""The audit: each kind of trouble is found and repaired, and a healthy system has none."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support import calls, faults
from tests.support.aws import Aws
from tests.support.clocks import START, ManualClock
from tests.support.world import SUCCEED, World, failure

RUN_WRITE = faults.writes("run#")
SEND = "sqs:SendMessageBatch"


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def lose_messages(world: World) -> None:
    """All messages of the queue are gone."""
    with calls.unseen():
        world.aws.sqs.purge_queue(QueueUrl=world.aws.queue_url)


def put(world: World, item: dict[str, Any]) -> None:
    with calls.unseen():
        world.aws.dynamodb.put_item(TableName=world.aws.table, Item=item)


def test_a_busy_healthy_system_has_no_findings(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.job_id == "fails" else SUCCEED
    world.submit(job_id="often", every="60s")
    world.submit(job_id="fails", cron="*/10 * * * *", base_s=30)
    world.submit(job_id="once", run_at="2026-11-30T12:10:00Z")
    world.submit(job_id="gone", cron="*/2 * * * *")
    for place in range(12):  # a burst, for now
        world.submit(job_id=f"b{place}", run_at="2026-11-30T11:58:00Z")
    assert world.audit().findings == 0
    world.deliver()
    world.cancel("gone")
    world.pass_time(1200, step_s=60)
    assert world.audit().findings == 0
    clock.advance(1)
    world.submit(job_id="once", run_at="2026-11-30T12:20:00Z")
    assert world.audit().findings == 0


def test_overdue_is_claimed_and_runs(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:10:00Z")
    world.submit(job_id="b", cron="10 * * * *")
    clock.set(at("12:13:00"))
    assert world.audit().findings == 0  # two ticks may still come
    clock.advance(1)
    found = world.audit()
    assert (found.overdue, found.findings) == (2, 2)
    world.deliver()
    assert world.target.counts() == {"a": 1, "b": 1}
    assert world.show("b").next_run_at == at("13:10")
    assert world.items("claim#") == []
    assert world.audit().findings == 0


def test_overdue_of_long_ago_follows_catch_up(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/10 * * * *", start_at="2026-11-30T12:10:00Z", catch_up="skip")
    clock.set(at("12:45"))
    assert world.audit().overdue == 1
    world.deliver()
    assert world.statuses("a") == ["skipped"]
    clock.set(at("12:50"))
    world.tick()
    world.deliver()
    assert world.statuses("a") == ["skipped", "succeeded"]
    clock.set(at("13:10"))
    assert world.audit().unstarted == 0  # what the span stands for has its record


@pytest.mark.parametrize("schedule", [{"run_at": "2026-11-30T12:00:00Z"}, {"cron": "0 12 * * *"}])
def test_claimed_and_never_started_is_sent_again(aws: Aws, clock: ManualClock, schedule: dict[str, str]) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", **schedule)
    lose_messages(world)
    clock.set(at("12:14:59"))
    assert world.audit().findings == 0
    clock.advance(2)
    assert world.audit().unstarted == 1
    world.deliver()
    assert world.statuses("a") == ["succeeded"]
    assert world.audit().findings == 0


def test_one_of_many_occurrences_that_never_started_is_sent_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", every="60s", max_runs=5)
    clock.set(at("11:59"))
    world.deliver()
    clock.set(at("12:00"))
    (message,) = world.receive()
    with calls.unseen():
        aws.sqs.delete_message(QueueUrl=aws.queue_url, ReceiptHandle=message.receipt)
    clock.set(at("12:04"))
    world.deliver()
    clock.set(at("12:20"))
    assert world.audit().unstarted == 1
    world.deliver()
    assert sorted(world.target.slots("a")) == [at("11:59") + timedelta(minutes=k) for k in range(5)]


@pytest.mark.parametrize("failed", [False, True], ids=["lease long over", "retry long due"])
def test_begun_and_abandoned_is_taken_up_again(aws: Aws, clock: ManualClock, failed: bool) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    if failed:
        world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
        world.deliver()
    else:
        with faults.crash(before=RUN_WRITE, nth=2):
            world.deliver()
    lose_messages(world)
    clock.advance(900 + 66)
    assert world.audit().abandoned == 1
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.attempt) == ("succeeded", 2)
    assert world.audit().findings == 0


def test_an_abandoned_run_of_a_cancelled_job_comes_to_its_end(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    with faults.crash(before=RUN_WRITE, nth=2):
        world.deliver()
    world.cancel("a")
    lose_messages(world)
    clock.advance(1000)
    assert world.audit().abandoned == 1
    world.deliver()
    assert world.statuses("a") == ["cancelled"]
    assert world.target.counts()["a"] == 1


def test_a_page_left_behind_is_settled_and_its_messages_are_sure(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.crash(before=SEND):
        world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    clock.advance(901)
    found = world.audit()
    assert (found.pages, found.unstarted) == (1, 1)
    assert world.items("claim#") == []
    world.deliver()
    assert world.target.counts() == {"a": 1}


@pytest.mark.parametrize(
    ("sk", "broken"),
    [
        ("job", {"schedule": {"S": "{"}}),
        ("job", {"status": {"S": "asleep"}}),
        ("job", {"revision": {"S": "one"}}),
        ("run#", {"attempts": {"S": ""}}),
        ("run#", {"status": {"S": "asleep"}}),
    ],
)
def test_an_item_that_cannot_be_read_is_named_and_stops_no_repair(
    aws: Aws, clock: ManualClock, sk: str, broken: dict[str, Any]
) -> None:
    world = World(aws, clock)
    world.submit(job_id="bad", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    (item,) = world.items(sk)
    put(world, item | broken)
    world.submit(job_id="good", run_at="2026-11-30T12:10:00Z")
    clock.set(at("12:30"))
    found = world.audit()
    assert found.unreadable == (f"job#bad {item['sk']['S']}",)
    assert found.overdue == 1
    world.deliver()
    assert world.target.counts()["good"] == 1


def test_a_job_that_cannot_be_planned_is_named_once_and_stops_no_repair(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="bad", cron="*/2 * * * *")
    world.submit(job_id="good", run_at="2026-11-30T12:10:00Z")
    item = next(item for item in world.items("job") if item["pk"]["S"] == "job#bad")
    put(world, item | {"schedule": {"S": '{"cron":"not a schedule"}'}})
    clock.set(at("12:30"))
    found = world.audit()
    assert (found.unplannable, found.overdue, found.findings) == (("bad",), 1, 2)


def test_i2_what_has_expired_is_no_finding_in_whichever_order_it_is_removed(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock, retention_days=1)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    clock.advance(2 * 86400)
    (run,) = world.items("run#")
    with calls.unseen():  # DynamoDB removes the run; the job is still there
        aws.dynamodb.delete_item(TableName=aws.table, Key={"pk": run["pk"], "sk": run["sk"]})
    assert world.audit().findings == 0
    world.deliver()
    assert world.target.counts() == {"a": 1}


def test_an_audit_that_runs_out_of_time_says_so(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    assert world.auditor.run(START, START).complete is False
    assert world.audit().complete is True
