"""A message that waits for long is sent anew before SQS would take it away: after 14 days, or after 1,000 receives."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.flows.execute import Received
from shared.queue import message_of
from shared.rules.waits import WORN_AGE, WORN_RECEIVES, is_worn
from tests.support import faults
from tests.support.aws import Aws, dead_letters, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

NOW = "2026-11-30T11:58:00Z"
HIDE, ANEW = "sqs:ChangeMessageVisibilityBatch", "sqs:SendMessage"
WORN: dict[str, dict[str, Any]] = {
    "by receives": {"receive_count": WORN_RECEIVES},
    "by age": {"sent_at": START - WORN_AGE - timedelta(seconds=1)},
}
HOWEVER = pytest.mark.parametrize("worn", WORN.values(), ids=WORN)
NONE = {"visible": 0, "delayed": 0, "flight": 0}


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    """With job `a`, high and of a group, which fails once and then waits for 40 s."""
    made = World(aws, clock)
    made.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    made.submit(job_id="a", priority="high", group="tenant-a", run_at=NOW, base_s=40)
    return made


def hand_over(world: World, **known: Any) -> list[Received]:
    """What is visible now, as SQS hands it over after so many receives, or so long after it was sent."""
    return [replace(one, **known) for one in world.receive()]


@pytest.mark.parametrize(
    ("receive_count", "sent_at", "worn"),
    [
        (1, None, False),
        (499, START, False),
        (500, None, True),
        (999, START, True),
        (1, START - timedelta(days=7), False),
        (1, START - timedelta(days=7, microseconds=1), True),
        (1, START + timedelta(seconds=1), False),  # SQS's clock and ours differ
    ],
)
def test_what_counts_as_worn(receive_count: int, sent_at: datetime | None, worn: bool) -> None:
    assert is_worn(receive_count, sent_at, START) is worn


@HOWEVER
def test_a_worn_message_that_is_to_come_back_is_sent_anew_and_acknowledged(world: World, worn: dict[str, Any]) -> None:
    (message,) = hand_over(world, **worn)
    with faults.logging() as log:
        (handled,) = world.executor.run([message])
    (sent,) = log.of(ANEW)
    assert sent.asked == {
        "QueueUrl": world.aws.queue_urls["high"],
        "MessageBody": message.body,
        "DelaySeconds": 40,
        "MessageGroupId": "tenant-a",
    }
    assert handled.ended.done
    assert len(log.of(HIDE)) == 1  # for its lease; it is not put back as well
    world.acknowledge([handled])
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 1, "flight": 0}
    world.clock.advance(40)
    (new,) = world.receive()
    assert (new.receive_count, new.sent_at, new.group) == (1, START, "tenant-a")
    world.acknowledge(world.executor.run([new]))
    (run,) = world.runs("a")
    assert (run.status, run.attempt) == ("succeeded", 2)
    assert messages_waiting(world.aws) == NONE


def test_a_message_that_is_not_worn_yet_is_put_back_as_it_is(world: World) -> None:
    batch = hand_over(world, receive_count=WORN_RECEIVES - 1, sent_at=START - WORN_AGE)
    with faults.logging() as log:
        (handled,) = world.executor.run(batch)
    assert (handled.ended.done, handled.ended.back_s) == (False, 40)
    assert log.of(ANEW) == []


@HOWEVER
def test_a_worn_message_that_has_served_its_purpose_is_only_acknowledged(world: World, worn: dict[str, Any]) -> None:
    world.target.script = lambda call: SUCCEED
    with faults.logging() as log:
        world.acknowledge(world.executor.run(hand_over(world, **worn)))
    assert log.of(ANEW) == []
    assert messages_waiting(world.aws) == NONE


def test_one_without_a_group_is_sent_anew_without_one(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at=NOW, base_s=40)
    with faults.logging() as log:
        world.executor.run(hand_over(world, receive_count=WORN_RECEIVES))
    (sent,) = log.of(ANEW)
    assert sent.asked.keys() == {"QueueUrl", "MessageBody", "DelaySeconds"}


def test_a_wait_of_hours_goes_on_in_delays_of_900_s_and_then_hidden(world: World, clock: ManualClock) -> None:
    world.submit(job_id="b", priority="low", run_at=NOW, base_s=7200, max_s=7200)
    (message,) = (replace(one, receive_count=WORN_RECEIVES) for one in world.receive("low"))
    with faults.logging() as log:
        world.acknowledge(world.executor.run([message]))
    assert [call.asked["DelaySeconds"] for call in log.of(ANEW)] == [900]
    clock.advance(900)
    (early,) = world.receive("low")
    with faults.logging() as log:
        (handled,) = world.executor.run([early])
    assert (handled.ended.done, handled.ended.outcome) == (False, "put_back")
    assert 6300 <= (handled.ended.back_s or 0) <= 6301
    assert log.of(ANEW) == []
    clock.advance(6302)
    world.pass_time(60)
    assert world.statuses("b") == ["succeeded"]
    assert world.target.counts()["b"] == 2


def test_i3_a_worn_message_that_comes_early_is_sent_anew_for_its_second(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:30Z")
    clock.advance(30)
    batch = hand_over(world, receive_count=WORN_RECEIVES)
    clock.set(START + timedelta(seconds=12.5))
    with faults.logging() as log:
        world.acknowledge(world.executor.run(batch))
    assert [call.asked["DelaySeconds"] for call in log.of(ANEW)] == [18]
    assert log.of(HIDE) == []
    assert world.target.calls == []


@HOWEVER
def test_a_worn_message_of_a_run_that_is_going_on_waits_anew_for_its_lease(world: World, worn: dict[str, Any]) -> None:
    (message,) = hand_over(world, **worn)
    inside: list[faults.Log] = []

    def script(call: Any) -> Any:
        with faults.logging() as log:
            world.new_executor().run([message])
        inside.append(log)
        return SUCCEED

    world.target.script = script
    world.executor.run([message])
    assert [call.asked["DelaySeconds"] for call in inside[0].of(ANEW)] == [66]
    assert world.target.counts() == {"a": 1}


@HOWEVER
def test_a_send_that_fails_puts_the_message_back_as_ever(world: World, worn: dict[str, Any]) -> None:
    batch = hand_over(world, **worn)
    with faults.logging() as log, faults.refusing(ANEW, times=10, code="OverLimit") as refusing:
        (handled,) = world.executor.run(batch)
    assert refusing.refused == 1
    assert (handled.ended.done, handled.ended.back_s, handled.error) == (False, 40, None)
    hidden = [entry["VisibilityTimeout"] for call in log.of(HIDE) for entry in call.asked["Entries"]]
    assert hidden == [65, 40]
    world.acknowledge([handled])
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 0, "flight": 1}
    world.clock.advance(41)
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


@HOWEVER
def test_a_crash_between_send_and_acknowledgment_only_doubles_the_message(world: World, worn: dict[str, Any]) -> None:
    batch = hand_over(world, **worn)
    with faults.crash(after=ANEW):
        world.executor.run(batch)
    world.clock.advance(1000)
    assert messages_waiting(world.aws)["visible"] == 2
    for _ in range(2):  # the one that comes second is put back while the other runs
        world.deliver()
        world.clock.advance(100)
    (run,) = world.runs("a")
    assert (run.status, run.attempt) == ("succeeded", 2)
    assert messages_waiting(world.aws) == NONE


@pytest.mark.backends("memory")
def test_a_message_that_is_put_back_1500_times_is_no_dead_letter(aws: Aws, clock: ManualClock) -> None:
    """Another executor holds the run all the time. The queues' net would take a message at 1,000 receives."""
    world = World(aws, clock)
    world.submit(job_id="a", priority="low", group="tenant-a", run_at=NOW)
    (message,) = world.receive()
    runs = world.executor.workshop.runs
    held = runs.start(message_of(message.body), "another#1", clock.now())
    for _ in range(1500):
        clock.advance(1000)
        runs.renew(held, clock.now() + timedelta(seconds=65))
        world.deliver()
    assert dead_letters(aws) == []
    clock.advance(1000)
    (still,) = world.receive()
    assert (still.body, still.priority, still.group) == (message.body, "low", "tenant-a")
    assert clock.now() > START + timedelta(days=14)
