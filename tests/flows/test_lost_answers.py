"""A call takes effect, its answer is lost, and before botocore makes it again somebody else goes on (I1, I2, I5)."""

from datetime import timedelta

import pytest

from shared.queue import message_of
from shared.store.runs import Success
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import START, ManualClock
from tests.support.world import World

pytestmark = pytest.mark.backends("moto", "emulator")

SEND = "sqs:SendMessageBatch"
CLAIM = "dynamodb:BatchExecuteStatement"


def test_i1_a_claim_made_twice_with_a_newer_ticks_claim_in_between_is_recovered(aws: Aws, clock: ManualClock) -> None:
    world, late = World(aws, clock), World(aws, clock)
    world.submit(job_id="a", every="60s")

    def newer_tick() -> None:
        clock.advance(51)  # the first tick has lost its lease
        (ticked,) = late.tick()
        assert ticked.claimed.won == 1

    clock.set(START + timedelta(seconds=70))
    with faults.lost_and_meanwhile(aws, CLAIM, newer_tick):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.lost) == (0, 1)
    world.pass_time(420)
    called = sorted(world.target.slots("a"))
    assert called == [START + timedelta(minutes=minute) for minute in range(1, len(called) + 1)]
    assert len(called) > 7
    assert world.items("claim#") == []


def test_i2_a_start_taken_back_twice_leaves_the_next_ones_start_alone(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    with faults.answer_lost(aws, SEND):
        world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    first, second = world.receive()
    runs = world.executor.workshop.runs
    reads_job = faults.refusing(lambda call: call.name == "dynamodb:GetItem")

    def other_executor() -> None:
        runs.start(message_of(second.body), "other", clock.now())

    takes_back = faults.lost_and_meanwhile(aws, lambda call: call.name == "dynamodb:DeleteItem", other_executor)
    with reads_job, takes_back:
        world.executor.run([first])
    (run,) = world.runs("a")
    assert (run.status, run.attempt, run.attempts[0].worker_id) == ("running", 1, "other")
    runs.succeed(Success(run, "null", None, clock.now()))
    assert world.statuses("a") == ["succeeded"]


def test_i5_a_submit_made_twice_does_not_bring_a_cancelled_job_back(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)

    def cancel() -> None:
        assert other.cancel("a").status == "cancelled"

    with faults.lost_and_meanwhile(aws, faults.writes("job"), cancel):
        world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.pass_time(200)
    assert world.show("a").status == "cancelled"
    assert world.target.counts() == {}
    assert world.items("claim#") == []
