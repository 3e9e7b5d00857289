"""Races in real threads on the emulator: two ticks, two executors, a cancel beside a start, submits beside ticks."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from shared.flows.execute import Received
from shared.model.call import Call
from shared.model.run import Result
from tests.support.aws import Aws, messages_waiting
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def side_by_side(*works: Callable[[], Any]) -> list[Any]:
    """Each work in a thread of its own, begun at the same moment; their answers, an exception included."""
    begin = threading.Barrier(len(works))
    answers: list[Any] = [None] * len(works)

    def do(place: int, work: Callable[[], Any]) -> None:
        begin.wait(10)
        try:
            answers[place] = work()
        except Exception as error:  # noqa: BLE001 - the test judges it
            answers[place] = error

    threads = [threading.Thread(target=do, args=one) for one in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def jobs(world: World, count: int, **schedule: str) -> None:
    for place in range(count):
        world.submit(job_id=f"j{place}", **schedule)


def test_c31_two_ticks_of_one_shard_at_once_one_does_the_work(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)
    jobs(world, 5, run_at="2026-11-30T12:05:00Z")
    clock.set(at("12:01"))
    (first,), (second,) = side_by_side(world.tick, other.tick)
    assert sorted((first.held, second.held)) == [False, True]
    assert first.claimed.won + second.claimed.won == 5
    assert messages_waiting(aws)["delayed"] == 5


def test_two_ticks_at_once_without_a_lease_claim_each_job_once(aws: Aws, clock: ManualClock) -> None:
    """Correctness does not rest on the lease: both work on the same buckets, under epochs of their own."""
    world, other = World(aws, clock), World(aws, clock)
    jobs(world, 30, cron="5 12 * * *")
    clock.set(at("12:01"))
    take = type(world.ticker.shards).take

    def take_always(shards: Any, shard: int, owner: str, now: datetime, lease_s: int) -> Any:
        return take(shards, shard, owner, now, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.ticker.shards), "take", take_always)
        (first,), (second,) = side_by_side(world.tick, other.tick)
    assert first.epoch != second.epoch
    assert first.claimed.won + second.claimed.won == 30
    clock.set(at("12:05"))
    world.deliver()
    assert world.target.counts() == {f"j{place}": 1 for place in range(30)}


def test_i2_two_executors_on_the_same_messages_call_each_run_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    jobs(world, 10, run_at="2026-11-30T11:58:00Z")
    batch = world.receive()
    side_by_side(*(lambda one=one: one.run(batch) for one in [world.new_executor() for _ in range(4)]))
    assert world.target.counts() == {f"j{place}": 1 for place in range(10)}


def test_i2_i7_a_crowd_of_executors_makes_exactly_the_attempts_allowed(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.fraction = 0.0  # a retry may start at once
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", max_attempts=3)
    (message,) = world.receive()
    executors = [world.new_executor() for _ in range(4)]
    for _ in range(5):
        side_by_side(*(lambda one=one: one.run([message] * 3) for one in executors))
    (run,) = world.runs("a")
    assert (run.status, world.target.counts()["a"]) == ("dead_lettered", 3)
    assert sorted(call.attempt for call, _ in world.target.calls) == [1, 2, 3]


@pytest.mark.parametrize("turn", range(8))
def test_i5_cancel_beside_start(aws: Aws, clock: ManualClock, turn: int) -> None:
    world = World(aws, clock)
    answered = threading.Event()
    called_after: list[bool] = []

    def script(call: Call) -> Result:
        called_after.append(answered.is_set())
        return SUCCEED

    world.target.script = script
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    batch: list[Received] = world.receive()

    def cancel() -> Any:
        view = world.cancel("a")
        if view.status == "cancelled":
            answered.set()
        return view

    _, view = side_by_side(lambda: world.executor.run(batch), cancel)
    if isinstance(view, Exception):  # the run was over before: 409
        assert world.statuses("a") == ["succeeded"]
    elif view.status == "cancelled" and not view.running:
        assert called_after == []
        assert world.statuses("a") in (["skipped"], ["cancelled"])  # it was due: that is on record
    assert called_after in ([], [False])
    assert world.statuses("a") in (["skipped"], ["cancelled"], ["succeeded"])


def test_a_cancel_beside_a_tick_runs_nothing_after_it(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    jobs(world, 10, cron="5 12 * * *")
    clock.set(at("12:01"))
    answers = side_by_side(world.tick, *(lambda place=place: world.cancel(f"j{place}") for place in range(0, 10, 2)))
    assert [view.status for view in answers[1:]] == ["cancelled"] * 5
    clock.set(at("12:05"))
    world.deliver()
    assert set(world.target.counts()) == {f"j{place}" for place in range(1, 10, 2)}
    assert not [item for item in world.items("job") if "due_key" in item and item["status"]["S"] == "cancelled"]


def test_submits_beside_a_tick_are_all_claimed_or_waiting(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    clock.set(at("12:01"))
    submits = [
        lambda place=place: world.submit(job_id=f"j{place}", run_at=f"2026-11-30T12:0{5 + place % 3}:00Z")
        for place in range(12)
    ]
    side_by_side(world.tick, *submits)
    for moment in ("12:02:30", "12:05:30", "12:07:30"):
        clock.set(at(moment))
        world.tick()
        world.deliver()
    assert world.target.counts() == {f"j{place}": 1 for place in range(12)}
