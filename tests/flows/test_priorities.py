"""Priorities and groups on their way: a queue each, a fair queue's key, the same for whatever is sent again.

That SQS keeps a noisy group from the others, only AWS can show; here the requests are held to it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from shared.flows.execute import Received
from shared.model.job import PRIORITIES, Priority
from shared.model.message import Message
from shared.queue import SendError, UnknownQueueError, message_text
from tests.support import calls, faults
from tests.support.aws import Aws, messages_waiting, sqs_event
from tests.support.calls import Call
from tests.support.clocks import START, ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

SEND, HIDE = "sqs:SendMessageBatch", "sqs:ChangeMessageVisibilityBatch"
NOW = "2026-11-30T11:58:00Z"
PRIORITY = pytest.mark.parametrize("priority", PRIORITIES)
# job id, priority, group
JOBS: tuple[tuple[str, Priority, str | None], ...] = (
    ("urgent", "high", "tenant-a"),
    ("plain", "normal", None),
    ("whenever", "low", "tenant-b"),
)
Way = tuple[str, str, str | None]  # job id, the queue that it was sent to, its MessageGroupId


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def log() -> Iterator[faults.Log]:
    with faults.logging() as made:
        yield made


def submit_all(world: World, **schedule: Any) -> None:
    for job_id, priority, group in JOBS:
        world.submit(job_id=job_id, priority=priority, group=group, **schedule)


def queue_of(world: World, call: Call) -> str:
    """The priority whose queue the call is made on."""
    (found,) = (priority for priority, url in world.aws.queue_urls.items() if url == call.asked["QueueUrl"])
    return found


def ways(world: World, log: faults.Log) -> list[Way]:
    """How each message was sent, in order; the log begins anew."""
    sent = [(queue_of(world, call), entry) for call in log.of(SEND) for entry in call.asked["Entries"]]
    log.seen.clear()
    return [(json.loads(e["MessageBody"])["job_id"], queue, e.get("MessageGroupId")) for queue, e in sent]


def hidden_in(world: World, log: faults.Log) -> list[tuple[str, int]]:
    """(queue, seconds) of each message that was hidden, in order; the log begins anew."""
    found = [
        (queue_of(world, call), entry["VisibilityTimeout"]) for call in log.of(HIDE) for entry in call.asked["Entries"]
    ]
    log.seen.clear()
    return found


# Sent to its own queue


def test_a_submit_sends_each_to_its_queue_with_its_group(world: World, log: faults.Log) -> None:
    submit_all(world, run_at="2026-11-30T12:00:00Z")
    assert ways(world, log) == list(JOBS)
    assert {priority: messages_waiting(world.aws, priority)["delayed"] for priority in PRIORITIES} == dict.fromkeys(
        PRIORITIES, 1
    )


def test_a_tick_sends_each_to_its_queue_the_most_urgent_first(world: World, clock: ManualClock) -> None:
    for number in range(12):
        submit_all_as(world, f"{number:02}")
    clock.set(at("12:06"))
    with faults.logging() as log:
        world.tick()
    sends = log.of(SEND)
    assert [queue_of(world, call) for call in sends] == ["high", "high", "normal", "normal", "low", "low"]
    assert [len(call.asked["Entries"]) for call in sends] == [10, 2] * 3
    found = {(job_id[:-3], queue, group) for job_id, queue, group in ways(world, log)}
    assert found == set(JOBS)


def submit_all_as(world: World, suffix: str) -> None:
    for job_id, priority, group in JOBS:
        world.submit(job_id=f"{job_id}-{suffix}", priority=priority, group=group, run_at="2026-11-30T12:10:00Z")


def test_a_queue_that_takes_nothing_holds_up_none_that_is_more_urgent(world: World, clock: ManualClock) -> None:
    submit_all(world, run_at="2026-11-30T12:10:00Z")
    clock.set(at("12:06"))

    def to_low(call: Call) -> bool:
        return call.name == SEND and call.asked["QueueUrl"] == world.aws.queue_urls["low"]

    with faults.refusing(to_low, code="OverLimit"), pytest.raises(SendError):
        world.tick()
    waiting = {priority: messages_waiting(world.aws, priority)["delayed"] for priority in PRIORITIES}
    assert waiting == {"high": 1, "normal": 1, "low": 0}
    clock.set(at("12:08"))
    world.tick()  # recovery
    clock.set(at("12:10"))
    world.deliver()
    assert world.target.counts() == {job_id: 1 for job_id, _, _ in JOBS}


def test_how_a_message_travels_stands_neither_in_its_body_nor_in_the_journal(world: World) -> None:
    plain = Message(job_id="a", scheduled_for=START, revision=1, fence=0, lease_s=65)
    assert message_text(replace(plain, priority="high", group="tenant-a")) == message_text(plain)
    with faults.crash(before=SEND):
        world.submit(job_id="a", priority="high", group="tenant-a", run_at=NOW)
    (page,) = world.items("claim#")
    assert page["entries"]["S"] == '[["a",1,0,65,["2026-11-30T11:58:00"]]]'


@PRIORITY
def test_a_priority_is_taken_kept_and_shown(
    world: World, log: faults.Log, monkeypatch: pytest.MonkeyPatch, priority: Priority
) -> None:
    http = Http(monkeypatch, world.api)
    body = {"job_id": "a", "target": ECHO, "priority": priority, "group": "tenant-a", "run_at": NOW}
    made = http.post("/v1/jobs", body)
    assert (made.status, made.document["priority"]) == (201, priority)
    assert ways(world, log) == [("a", priority, "tenant-a")]
    assert http.get("/v1/jobs/a").document["priority"] == priority


def test_a_change_of_priority_or_group_holds_from_the_next_claim_on(world: World, log: faults.Log) -> None:
    world.submit(job_id="a", cron="*/5 * * * *", group="tenant-a")
    assert ways(world, log) == [("a", "normal", "tenant-a")]  # 12:00
    world.patch("a", priority="low", group="tenant-b")
    assert ways(world, log) == []
    world.clock.set(at("12:01"))
    world.tick()
    assert ways(world, log) == [("a", "low", "tenant-b")]  # 12:05
    world.deliver()
    world.clock.set(at("12:05"))
    world.deliver()
    assert world.target.slots("a") == [at("12:00"), at("12:05")]


@PRIORITY
def test_a_run_that_a_user_asks_for_goes_the_same_way(world: World, log: faults.Log, priority: Priority) -> None:
    world.target.script = lambda call: failure()
    world.submit(job_id="a", priority=priority, group="tenant-a", every="1h", max_attempts=1)
    world.trigger("a")
    assert ways(world, log) == [("a", priority, "tenant-a")]
    world.clock.advance(1)
    world.deliver()
    (run,) = world.runs("a")
    world.redrive("a", run.scheduled_for)
    assert ways(world, log) == [("a", priority, "tenant-a")]


# Sent again


def test_recovery_sends_each_to_its_queue_with_its_group(world: World, clock: ManualClock) -> None:
    for job_id, priority, group in JOBS:
        with faults.crash(before=SEND):
            world.submit(job_id=job_id, priority=priority, group=group, run_at="2026-11-30T12:02:00Z")
    clock.set(at("12:00"))
    with faults.logging() as log:
        world.tick()
    assert sorted(ways(world, log)) == sorted(JOBS)


def claimed_and_lost(world: World, clock: ManualClock) -> None:
    for job_id, priority, group in JOBS:
        with faults.crash(before=SEND):
            world.submit(job_id=job_id, priority=priority, group=group, run_at="2026-11-30T12:02:00Z")
    clock.set(at("13:00"))  # no tick in between


def overdue(world: World, clock: ManualClock) -> None:
    submit_all(world, run_at="2026-11-30T12:10:00Z")
    clock.set(at("12:14"))


def lose_messages(world: World) -> None:
    with calls.unseen():
        for url in world.aws.queue_urls.values():
            world.aws.sqs.purge_queue(QueueUrl=url)


def never_started(world: World, clock: ManualClock) -> None:
    submit_all(world, run_at=NOW)
    lose_messages(world)
    clock.set(at("12:30"))


def abandoned(world: World, clock: ManualClock) -> None:
    submit_all(world, run_at=NOW)
    for priority in PRIORITIES:
        with faults.crash(before=faults.writes("run#"), nth=2):  # the end of the run
            world.executor.run(world.receive(priority))
    lose_messages(world)
    clock.set(at("12:30"))


@pytest.mark.parametrize("lost", [claimed_and_lost, overdue, never_started, abandoned])
def test_the_audit_sends_each_to_its_queue_with_its_group(
    world: World, clock: ManualClock, lost: Callable[[World, ManualClock], None]
) -> None:
    lost(world, clock)
    with faults.logging() as log:
        assert world.audit().findings >= 3
    assert set(ways(world, log)) == set(JOBS)


# Put back where it came from


@PRIORITY
def test_a_run_is_held_and_put_back_in_the_queue_that_it_came_from(
    world: World, log: faults.Log, priority: Priority
) -> None:
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    world.submit(job_id="a", priority=priority, run_at=NOW, base_s=40)
    world.deliver()
    assert hidden_in(world, log) == [(priority, 65), (priority, 40)]
    assert messages_waiting(world.aws, priority)["flight"] == 1
    world.clock.advance(41)
    world.deliver()
    assert world.statuses("a") == ["succeeded"]
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 0, "flight": 0}


def test_messages_of_several_queues_are_hidden_each_in_its_own(world: World, log: faults.Log) -> None:
    """Lambda hands over batches of one queue; nothing rests on it."""
    submit_all(world, run_at=NOW)
    batch = [message for priority in PRIORITIES for message in world.receive(priority)]
    handled = world.executor.run(batch)
    assert hidden_in(world, log) == [("high", 65), ("normal", 65), ("low", 65)]
    assert all(one.ended.done for one in handled)


@PRIORITY
def test_the_handler_knows_the_queue_by_its_arn(world: World, priority: Priority) -> None:
    world.submit(job_id="a", priority=priority, group="tenant-a", run_at=NOW)
    (record,) = sqs_event(world.aws, priority=priority)["Records"]
    assert world.executor.queue.priority_of(record["eventSourceARN"]) == priority


def test_a_queue_that_is_none_of_ours_is_refused(world: World) -> None:
    with pytest.raises(UnknownQueueError, match="none of"):
        world.executor.queue.priority_of("arn:aws:sqs:us-east-1:123456789012:somebody-elses")


def test_what_sqs_knows_of_a_message_is_read(world: World, clock: ManualClock) -> None:
    world.submit(job_id="a", priority="high", group="tenant-a", run_at="2026-11-30T11:59:00Z")
    clock.set(at("11:59"))
    world.receive()
    clock.advance(1000)
    (again,) = world.receive()
    assert (again.priority, again.group, again.receive_count, again.sent_at) == ("high", "tenant-a", 2, START)


def test_what_sqs_does_not_tell_counts_as_new() -> None:
    known = Received.of("m", "r", "{}", {}, "low")
    assert known == Received("m", "r", "{}", "low", group=None, receive_count=1, sent_at=None)
