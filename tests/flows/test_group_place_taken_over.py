"""An attempt that was taken over takes no place of its group away from the attempt that has its run now."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from shared.flows.attempt import AttemptFlow
from shared.queue import message_of
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.long_runs import LongRun
from tests.support.world import World

pytestmark = pytest.mark.backends("moto", "memory")


def test_an_attempt_that_slept_before_it_asked_leaves_the_place_to_the_next_one(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.api.groups.limit("g", 1, clock.now())
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", group="g")
    (received,) = world.receive()
    world.executor.queue.hide([(received.receipt, 65)])
    asleep, wake = threading.Event(), threading.Event()
    ended: list[Any] = []
    sleeper = AttemptFlow(replace(world.executor.workshop), message_of(received.body))
    thread = threading.Thread(target=lambda: ended.append(sleeper.make()))

    def asks(call: faults.Call) -> bool:
        if threading.current_thread() is thread and call.name == "dynamodb:GetItem" and "limit" in str(call.params):
            asleep.set()
            assert wake.wait(10)
        return False

    def next_attempt(run: LongRun) -> None:
        wake.set()
        thread.join(10)
        world.submit(job_id="b", run_at="2026-11-30T11:59:00Z", group="g")
        assert [one.ended.outcome for one in world.deliver()] == ["waiting"]
        assert world.target.calls == []  # `max_running` is 1, and this attempt is going on

    with faults.refusing(asks):
        thread.start()
        assert asleep.wait(10)
        clock.advance(66)
        LongRun(world, next_attempt).make()
    assert [one.outcome for one in ended] == ["lease_lost"]
    assert world.statuses("a") == ["succeeded"]
    world.pass_time(60)
    assert world.statuses("b") == ["succeeded"]
