"""Which minutes of the index a tick looks at: all that were not drained, and of the others half, so that I8 holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.store import keys
from tests.support import calls
from tests.support.aws import Aws
from tests.support.calls import Call, Observer
from tests.support.clocks import START, ManualClock
from tests.support.world import World

pytestmark = pytest.mark.backends("memory")


class Looks(Observer):
    """The minutes that are looked at; those of `blind` seem empty."""

    order = calls.FAULTS

    def __init__(self, blind: frozenset[str]) -> None:
        self.blind = blind
        self.minutes: list[datetime] = []

    def answer(self, call: Call) -> dict[str, Any] | None:
        if call.params.get("IndexName") != keys.DUE_INDEX:
            return None
        minute = call.params["ExpressionAttributeValues"][":bucket"]["S"].partition("#")[0]
        self.minutes.append(datetime.fromisoformat(f"{minute}+00:00"))
        return {"Items": [], "Count": 0, "ScannedCount": 0} if minute in self.blind else None


@contextmanager
def looking(*blind: str) -> Iterator[Looks]:
    looks = Looks(frozenset(blind))
    with calls.observing(looks):
        yield looks


def minutes(first: datetime, last: datetime) -> set[datetime]:
    return {first + timedelta(minutes=k) for k in range(round((last - first) / timedelta(minutes=1)) + 1)}


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    """A shard that was ticked, up to its horizon."""
    world = World(aws, clock)
    world.tick()
    return world


@pytest.mark.parametrize("horizon_s", [0, 300, 840])
def test_i8_two_ticks_together_look_at_every_minute(aws: Aws, clock: ManualClock, horizon_s: int) -> None:
    world = World(aws, clock, horizon_s=horizon_s)
    world.tick()
    before: set[datetime] = set()
    for _ in range(4):
        clock.advance(60)
        with looking() as looks:
            world.tick()
        now = clock.now()
        horizon = now + timedelta(seconds=horizon_s)
        every = minutes(min(now, horizon - timedelta(minutes=1)) - timedelta(minutes=10), horizon)
        seen = set(looks.minutes)
        assert seen <= every
        if before:
            assert before | seen >= every - {horizon}
        # What is due, what was due a minute ago, what the last tick saw in part, and what none has seen.
        assert seen >= minutes(now - timedelta(minutes=1), now) | minutes(horizon - timedelta(minutes=1), horizon)
        assert len(seen) <= len(every) / 2 + 3
        before = seen


@pytest.mark.parametrize("ticks_before", [3, 4])
@pytest.mark.parametrize("minute", range(5))
def test_i8_a_row_that_the_index_shows_late_is_claimed_by_the_second_tick(
    world: World, ticks_before: int, minute: int
) -> None:
    due = START + timedelta(minutes=6 + minute)
    world.submit(job_id="a", run_at=due.isoformat())
    name = f"{due:%Y-%m-%dT%H:%M}"
    with looking(name):
        for _ in range(9 + ticks_before):
            world.clock.advance(60)
            world.tick()
    won = []
    for _ in range(2):
        world.clock.advance(60)
        won += [ticked.claimed.won for ticked in world.tick()]
    assert sum(won) == 1


def test_a_minute_that_was_not_drained_is_looked_at_by_each_tick(world: World) -> None:
    began = world.clock.now()
    for _ in range(3):
        world.clock.advance(60)
        with looking() as looks:
            world.tick(stop_after_s=0)  # no time for any
        assert looks.minutes == []
    world.clock.advance(60)
    with looking() as looks:
        world.tick()
    horizon = timedelta(seconds=world.horizon_s)
    assert set(looks.minutes) >= minutes(began + horizon, world.clock.now() + horizon)


def test_a_shard_that_was_never_ticked_is_looked_at_whole(aws: Aws, clock: ManualClock) -> None:
    with looking() as looks:
        World(aws, clock).tick()
    assert set(looks.minutes) == minutes(START - timedelta(hours=2), START + timedelta(minutes=5))
