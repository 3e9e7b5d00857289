"""The dead-letter queue after a redrive: what began again leaves it, and what needs a person stays, at once visible."""

import json
from datetime import datetime, timedelta

import pytest

from shared.flows.dead_letter import told_of
from tests.support import calls, faults
from tests.support.aws import Aws, dead_letters
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    return world


def dead(world: World, *job_ids: str) -> datetime:
    """One-offs whose runs are dead-lettered, all of one time."""
    due = world.clock.now() + timedelta(seconds=1)
    for job_id in job_ids:
        world.submit(job_id=job_id, run_at=due.isoformat(), max_attempts=1)
    world.clock.advance(1)
    world.deliver()
    return due


def put(world: World, body: str) -> None:
    with calls.unseen():
        world.aws.sqs.send_message(QueueUrl=world.aws.dead_letter_queue_url, MessageBody=body)


def of(world: World) -> list[str]:
    """The letters that are visible a second later, by the job they are of and their last attempt."""
    world.clock.advance(1)
    return sorted(f"{one['job']['job_id']} {one['attempts'][-1]['attempt']}" for one in dead_letters(world.aws))


def test_the_letters_of_what_was_redriven_go_and_the_others_stay(world: World) -> None:
    due = dead(world, *(f"j{place:02}" for place in range(25)))
    for job_id in ("j03", "j17"):
        world.redrive(job_id, due)
    found = world.audit()
    assert (found.redriven, found.answered, found.findings) == (2, 2, 0)
    assert of(world) == [f"j{place:02} 1" for place in range(25) if place not in (3, 17)]


def test_a_run_that_is_dead_again_leaves_its_newest_letter(world: World) -> None:
    due = dead(world, "a")
    for _ in range(2):
        world.clock.advance(1)
        world.redrive("a", due)
        world.deliver()
    assert world.audit().answered == 2
    assert of(world) == ["a 3"]


def test_both_copies_of_a_letter_go(world: World) -> None:
    """A crash between the letter and the mark puts it there twice."""
    due = dead(world, "a")
    (letter,) = dead_letters(world.aws)
    for _ in range(2):
        put(world, json.dumps(letter))
    world.redrive("a", due)
    assert world.audit().answered == 2
    assert of(world) == []


def test_what_is_no_letter_of_a_known_run_stays(world: World) -> None:
    due = dead(world, "a")
    (letter,) = dead_letters(world.aws)
    world.redrive("a", due)
    others = [
        "no JSON",
        '{"unreadable":"x","last_error":"y"}',
        '{"job_id":"a","scheduled_for":"2026-11-30T11:58:01Z","revision":1,"fence":0,"lease_s":65}',
        json.dumps({**letter, "attempts": []}),
        json.dumps({**letter, "run": {**letter["run"], "job_id": "unknown"}}),
        json.dumps({**letter, "run": {**letter["run"], "scheduled_for": "2026-11-30T12:00:00Z"}}),
        json.dumps({**letter, "attempts": [{**letter["attempts"][0], "attempt": 2}]}),
    ]
    for body in others:
        put(world, body)
    assert world.audit().answered == 0
    world.clock.advance(1)
    with calls.unseen():
        answer = world.aws.sqs.receive_message(QueueUrl=world.aws.dead_letter_queue_url, MaxNumberOfMessages=10)
    assert sorted(one["Body"] for one in answer["Messages"]) == sorted(others)


def test_without_a_redrive_nobody_looks_into_the_queue(world: World) -> None:
    due = dead(world, "a", "b")
    with faults.logging() as log:
        world.audit()
        world.redrive("a", due)
        world.clock.advance(4 * 3600)
        world.audit()
    assert not [call for call in log.seen if call.asked.get("QueueUrl") == world.aws.dead_letter_queue_url]


def test_one_sweep_is_bounded_and_gives_all_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.flows.letters.MOST_LETTERS", 10)
    due = dead(world, *(f"j{place:02}" for place in range(22)))
    for place in range(22):
        world.redrive(f"j{place:02}", due)
    assert world.audit().answered == 10
    assert world.audit().answered == 10
    assert len(dead_letters(world.aws)) == 2


@pytest.mark.parametrize("operation", ["ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"])
def test_an_error_of_the_queue_costs_no_finding_and_no_letter(world: World, operation: str) -> None:
    due = dead(world, "a", "b")
    world.redrive("a", due)
    world.acknowledge_unseen()
    world.clock.advance(1000)
    queue = world.aws.dead_letter_queue_url
    with faults.refusing(lambda call: call.operation == operation and call.asked["QueueUrl"] == queue):
        found = world.audit()
    assert found.abandoned == 1
    world.target.script = lambda call: SUCCEED
    world.deliver()
    world.clock.advance(61)  # what was received is hidden for a minute
    world.audit()
    assert of(world) == ["b 1"]


@pytest.mark.parametrize(
    "body", ["", "null", "[]", '{"run":{}}', '{"attempts":[{"attempt":true}],"run":{}}', "[" * 9999]
)
def test_what_is_no_letter_tells_nothing(body: str) -> None:
    assert told_of(body) is None
