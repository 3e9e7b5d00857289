"""The tick function: several shards in one call, each on its own, and none hidden behind the others."""

import json
import os
import threading
import unittest.mock
from typing import Any

import pytest

from shared.flows.ticks import TicksFlow
from shared.model.errors import DuetimeError, InputError
from shared.rules.sharding import shard_of
from shared.settings import TickSettings
from shared.store import keys
from tests.support import calls, faults
from tests.support.aws import Aws, messages_waiting
from tests.support.calls import Call, Observer
from tests.support.clocks import ManualClock
from tests.support.http import LambdaContext
from tests.support.world import World

# The function is built as it is loaded; each test then puts its own deployment in the place of this one.
with unittest.mock.patch.dict(os.environ, dict.fromkeys(TickSettings.variables().values(), "1")):
    from functions.tick import handler as function

SHARDS = 3
IDS = [next(f"j{n}" for n in range(99) if shard_of(f"j{n}", SHARDS) == shard) for shard in range(SHARDS)]


@pytest.fixture
def world(aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> World:
    """A job of each shard, due and not claimed."""
    world = World(aws, clock, shards=SHARDS)
    for job_id in IDS:
        world.submit(job_id=job_id, run_at="2026-11-30T12:05:00Z")
    clock.advance(240)
    monkeypatch.setattr(function, "flow", TicksFlow(world.ticker))
    return world


def tick(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Call the function; what it says of each shard."""
    told: list[dict[str, Any]] = function.handler(event, LambdaContext())["shards"]  # type: ignore[arg-type]
    return told


def of_shard(shard: int, call: Call) -> bool:
    """Whether a look into the index is one of this shard."""
    return call.params.get("IndexName") == keys.DUE_INDEX and call.params["ExpressionAttributeValues"][":bucket"][
        "S"
    ].endswith(f"#{shard}")


def test_each_shard_of_an_event_is_ticked(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    told = tick({"shards": [0, 1, 2]})
    assert [(one["shard"], one["claimed"], one["epoch"], one["complete"]) for one in told] == [
        (shard, 1, 1, True) for shard in range(SHARDS)
    ]
    assert messages_waiting(world.aws)["delayed"] == SHARDS
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (metrics,) = [line for line in lines if "_aws" in line]
    assert sum(metrics["Claimed"]) == SHARDS


def test_an_idle_minute_leaves_no_line_and_no_metrics(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    tick({"shards": [0, 1, 2]})
    assert [record.message for record in caplog.records] == ["tick"]
    caplog.clear()
    capsys.readouterr()
    world.clock.advance(60)
    assert [one["complete"] for one in tick({"shards": [0, 1, 2]})] == [True] * SHARDS
    assert (capsys.readouterr().out, caplog.records) == ("", [])


def test_an_event_of_one_shard_is_understood(world: World) -> None:
    assert [(one["shard"], one["claimed"]) for one in tick({"shard": 1})] == [(1, 1)]
    assert messages_waiting(world.aws)["delayed"] == 1


@pytest.mark.parametrize(
    "event", [{}, {"shard": -1}, {"shard": "0"}, {"shard": True}, {"shards": []}, {"shards": 3}, {"shards": [0, None]}]
)
def test_an_event_that_names_no_shards_is_refused(world: World, event: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="whole numbers from 0 on"):
        tick(event)
    assert world.items(keys.LEASE) == []


def test_a_failing_shard_keeps_no_other_from_its_work_and_is_not_hidden(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with faults.refusing(lambda call: of_shard(1, call)), pytest.raises(DuetimeError, match=r"shards \[1\] failed"):
        tick({"shards": [0, 1, 2]})
    assert messages_waiting(world.aws)["delayed"] == SHARDS - 1
    (logged,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert logged.__dict__["shard"] == 1
    assert logged.exc_info is not None
    world.clock.advance(60)  # the failed tick's lease has run out
    assert [one["claimed"] for one in tick({"shards": [0, 1, 2]})] == [0, 1, 0]


def test_a_busy_shard_delays_no_other(world: World) -> None:
    """Shard 0 goes on only once the others have given their leases back."""
    left, others_done = {1, 2}, threading.Event()

    class Busy(Observer):
        order = calls.FAULTS
        in_time = True

        def on_request(self, call: Call) -> None:
            if of_shard(0, call):
                self.in_time = self.in_time and others_done.wait(10)

        def on_answer(self, call: Call) -> None:
            if "#ticked_at" in call.asked.get("UpdateExpression", ""):
                left.discard(int(call.asked["Key"][keys.PK]["S"].removeprefix("shard#")))
                if not left:
                    others_done.set()

    busy = Busy()
    with calls.observing(busy):
        told = tick({"shards": [0, 1, 2]})
    assert busy.in_time
    assert [one["claimed"] for one in told] == [1, 1, 1]


def test_a_shard_that_another_invocation_ticks_is_left_to_it(world: World) -> None:
    world.ticker.shards.take(2, "another", world.clock.now(), 50)
    assert [one["held"] for one in tick({"shards": [0, 1, 2]})] == [False, False, True]
