"""Claims: each is sent exactly when it is made, also when answers are lost, statements are refused, or shards grow."""

from datetime import timedelta

import pytest

from tests.support import faults
from tests.support.aws import Aws, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.world import World

pytestmark = pytest.mark.backends("moto", "emulator")

CLAIM = "dynamodb:BatchExecuteStatement"


def test_a_claim_whose_answer_was_lost_is_sent_all_the_same(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:10:00Z")
    clock.set(START + timedelta(minutes=8))
    with faults.answer_lost(aws, CLAIM):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.lost) == (1, 0)
    clock.advance(300)
    world.deliver()
    assert world.statuses("a") == ["succeeded"]


def test_a_recurring_claim_whose_answer_was_lost_is_sent_all_the_same(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/10 * * * *")
    clock.set(START + timedelta(minutes=8))
    with faults.answer_lost(aws, CLAIM):
        world.tick()
    assert messages_waiting(aws)["delayed"] == 1


def test_jobs_claimed_by_another_tick_are_lost_and_not_sent(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", cron="*/10 * * * *")
    clock.set(START + timedelta(minutes=8))
    late = World(aws, clock)

    def other_tick_comes_first(call: faults.Call) -> bool:
        if call.name == CLAIM and not done:
            done.append(True)
            clock.advance(51)  # the first tick's lease is over: it is a zombie now
            late.tick()
        return False

    done: list[bool] = []
    with faults.refusing(other_tick_comes_first):
        (ticked,) = world.tick()
    assert (ticked.claimed.won, ticked.claimed.lost) == (0, 1)
    assert messages_waiting(aws)["delayed"] == 1
