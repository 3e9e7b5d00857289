"""At most `max_running` runs of a group at a time: exact also when executors die, sleep or the limit changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from shared.flows.groups import GroupView
from tests.support import calls, faults
from tests.support.aws import Aws, messages_waiting
from tests.support.calls import Call as AwsCall
from tests.support.clocks import ManualClock
from tests.support.long_runs import LongRun
from tests.support.sleepers import Sleeper, sleeping
from tests.support.world import SUCCEED, World, failure

DUE = "2026-11-30T11:58:00Z"


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def limit(world: World, max_running: int | None, group: str = "g") -> GroupView:
    return world.api.groups.limit(group, max_running, world.clock.now())


def running(world: World, group: str = "g") -> int:
    return world.api.groups.show(group, world.clock.now()).running


def submit(world: World, *job_ids: str, **more: Any) -> None:
    for job_id in job_ids:
        world.submit(job_id=job_id, **{"run_at": DUE, "group": "g", "timeout_s": 100, "base_s": 5, **more})


def told(world: World, *job_ids: str) -> list[tuple[str, str | None]]:
    return [(str(run.status), run.reason) for job_id in job_ids for run in world.runs(job_id)]


def settle(world: World, seconds: int = 120) -> None:
    """Until no message is left."""
    for _ in range(seconds):
        world.clock.advance(1)
        world.deliver()
        if set(messages_waiting(world.aws).values()) == {0}:
            return
    raise AssertionError(f"messages are left: {messages_waiting(world.aws)}")


def entry(call: AwsCall) -> bool:
    """A write of a group's item."""
    return call.operation == "UpdateItem" and call.params["Key"]["sk"]["S"] == "limit"


def taking(call: AwsCall) -> bool:
    return entry(call) and ":mine" in call.params.get("ExpressionAttributeValues", {})


def giving_back(call: AwsCall) -> bool:
    return entry(call) and call.params["UpdateExpression"].startswith("REMOVE #holders")


def succeeding(call: AwsCall) -> bool:
    return call.operation == "UpdateItem" and "':result'" in str(call.params)


def held_by(world: World, others: Callable[[LongRun], Any], count: int = 1) -> None:
    """The first `count` messages are made one inside the other; in the innermost `others` is called."""

    def script(run: LongRun) -> Any:
        if count > 1:
            run.beat(1)
            held_by(world, others, count - 1)
            return None
        return others(run)

    batch = world.receive()
    with only(world, batch[:1]):
        world.executor.queue.hide([(one.receipt, 0) for one in batch[1:]])
        LongRun(world, script).make()


@contextmanager
def only(world: World, batch: list[Any]) -> Iterator[None]:
    """The next receive gives this batch."""
    batches, receive = [batch], world.receive
    world.receive = lambda *priorities: batches.pop() if batches else receive(*priorities)  # type: ignore[method-assign]
    try:
        yield
    finally:
        world.receive = receive  # type: ignore[method-assign]


def test_no_more_than_max_running_go_on_and_all_come_to_their_end(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 2)
    jobs = [f"j{number}" for number in range(5)]
    submit(world, *jobs)

    def others(run: LongRun) -> None:
        assert running(world) == 2
        run.beat(1)
        handled = world.deliver()
        assert [one.ended.outcome for one in handled] == ["waiting"] * 3
        assert sorted(told(world, *jobs))[:3] == [("enqueued", "group_limit")] * 3
        assert world.target.calls == []

    held_by(world, others, 2)
    assert running(world) == 0
    settle(world)
    assert told(world, *jobs) == [("succeeded", None)] * 5
    assert {attempt for job in jobs for run in world.runs(job) for attempt in [run.attempt]} == {1}


def test_a_group_without_a_limit_costs_a_read_and_no_write(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    submit(world, "a")
    with faults.logging() as log:
        world.deliver()
    assert log.names().count("dynamodb:GetItem") == 2  # the job, the group
    assert log.names().count("dynamodb:UpdateItem") == 2  # start and end
    assert world.items("limit") == []


def test_a_job_without_a_group_costs_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    submit(world, "a", group=None)
    with faults.logging() as log:
        world.deliver()
    assert log.names().count("dynamodb:GetItem") == 1


def test_a_place_costs_two_writes_and_a_look_none(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a", "b")
    looks: list[int] = []

    def others(run: LongRun) -> None:
        run.beat(1)
        with faults.logging() as log:
            world.deliver()
        looks.append(len(log.of(entry)))
        assert log.names().count("dynamodb:UpdateItem") == 2  # start and park

    with faults.logging() as log:
        held_by(world, others)
    assert looks == [0]
    assert len(log.of(entry)) == 2


def test_waits_grow_to_30_s(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a", "b", timeout_s=105)
    waits: list[float] = []

    def others(run: LongRun) -> None:
        run.beat(1)
        for _ in range(6):
            (one,) = world.deliver()
            waits.append(one.ended.back_s or 0)
            for _ in range(2):
                run.beat(waits[-1] / 2 + 1)

    held_by(world, others)
    assert waits[0] <= 2
    assert all(15 <= wait_s <= 30 for wait_s in waits[4:])


def test_a_wait_between_two_attempts_holds_no_place(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.job_id == "a" and call.attempt == 1 else SUCCEED
    limit(world, 1)
    submit(world, "a", base_s=60)
    world.deliver()
    assert told(world, "a") == [("failed", None)]
    assert running(world) == 0
    submit(world, "b")
    world.deliver()
    assert told(world, "b") == [("succeeded", None)]


def test_a_retry_takes_a_place_like_any_other_and_is_numbered_on(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.job_id == "a" and call.attempt == 1 else SUCCEED
    limit(world, 1)
    submit(world, "a", base_s=10)
    world.deliver()
    submit(world, "b", run_at="2026-11-30T11:58:05Z")
    clock.advance(6)

    def others(run: LongRun) -> None:
        run.beat(10)
        assert [one.ended.outcome for one in world.deliver()] == ["waiting"]
        assert [attempt.outcome for attempt in world.runs("a")[0].attempts] == ["failed"]

    held_by(world, others)
    settle(world)
    assert [(attempt.attempt, attempt.outcome) for attempt in world.runs("a")[0].attempts] == [
        (1, "failed"),
        (2, "succeeded"),
    ]


def test_groups_do_not_meet(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    limit(world, 1, "other")
    submit(world, "a")
    submit(world, "b", group="other")

    def others(run: LongRun) -> None:
        run.beat(1)
        world.deliver()
        assert sorted(told(world, "a", "b")) == [("running", None), ("succeeded", None)]

    held_by(world, others)


# The limit changes


def test_a_lower_limit_holds_at_once_for_new_starts_and_ends_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 3)
    submit(world, "a", "b", "c", "d")

    def others(run: LongRun) -> None:
        assert limit(world, 1) == GroupView("g", 1, 3)
        run.beat(1)
        assert [one.ended.outcome for one in world.deliver()] == ["waiting"]

    held_by(world, others, 3)
    settle(world)
    assert told(world, "a", "b", "c", "d") == [("succeeded", None)] * 4


def test_a_limit_that_is_lowered_as_a_run_takes_its_place_holds_for_it(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 2)
    submit(world, "a", "b")

    class Lowering(faults._Nth):
        def answer(self, call: AwsCall) -> None:
            if self.hit(call):
                limit(world, 1)

    def others(run: LongRun) -> None:
        run.beat(1)
        with calls.observing(Lowering(taking)):
            assert [one.ended.outcome for one in world.deliver()] == ["waiting"]

    held_by(world, others)


def test_a_limit_taken_away_and_set_again_still_counts_those_that_have_a_place(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a", "b", "c")

    def others(run: LongRun) -> None:
        assert limit(world, None) == GroupView("g", None, 1)
        run.beat(1)
        assert [one.ended.outcome for one in world.deliver()] == ["succeeded", "succeeded"]
        assert limit(world, 1) == GroupView("g", 1, 1)
        submit(world, "d")
        assert [one.ended.outcome for one in world.deliver()] == ["waiting"]

    held_by(world, others)
    settle(world)
    assert told(world, "d") == [("succeeded", None)]


def test_a_limit_of_nobody_is_none_and_taking_it_away_makes_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    assert limit(world, None, "nobody") == GroupView("nobody", None, 0)
    assert world.api.groups.show("nobody", clock.now()) == GroupView("nobody", None, 0)
    assert world.items("limit") == []


# Executors that die


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_the_place_of_a_dead_executor_is_free_at_the_end_of_its_lease_and_not_before(
    aws: Aws, clock: ManualClock, max_attempts: int
) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "dead", timeout_s=60, max_attempts=max_attempts)
    dead = world.receive()
    with faults.crash(before=giving_back):
        world.executor.run(dead)
    world.executor.queue.hide([(one.receipt, 3600) for one in dead])  # so that its run is not just taken over
    submit(world, "b", run_at="2026-11-30T11:58:20Z", timeout_s=30)
    clock.advance(20)
    world.pass_time(44, step_s=1)
    assert told(world, "dead", "b") == [("running", None), ("enqueued", "group_limit")]
    world.pass_time(32, step_s=1)
    assert told(world, "b") == [("succeeded", None)]
    assert len(world.target.calls) == 2
    world.executor.queue.hide([(one.receipt, 0) for one in dead])
    settle(world)
    assert told(world, "dead") == [("succeeded" if max_attempts == 3 else "dead_lettered", None)]
    assert world.runs("dead")[0].attempts[0].outcome == "lost"
    assert running(world) == 0


@pytest.mark.backends("memory")  # minutes, second by second
@pytest.mark.parametrize("match", [taking, giving_back, succeeding], ids=lambda match: match.__name__)
@pytest.mark.parametrize("when", ["before", "after"])
def test_wherever_an_executor_dies_the_places_come_back(
    aws: Aws, clock: ManualClock, match: Callable[[AwsCall], bool], when: str
) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a")
    with faults.crash(**{when: match}):  # type: ignore[arg-type]
        world.deliver()
    submit(world, "b")
    settle(world, 200)
    assert told(world, "a", "b") == [("succeeded", None)] * 2
    assert running(world) == 0


def test_a_place_that_nobody_gave_back_is_not_shown_once_its_attempt_is_over(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a")
    with faults.refusing(giving_back) as refused:
        world.deliver()
    assert refused.refused == 1
    assert told(world, "a") == [("succeeded", None)]
    assert running(world) == 1
    clock.advance(66)
    assert running(world) == 0
    submit(world, "b")
    world.deliver()
    assert told(world, "b") == [("succeeded", None)]


def test_a_place_whose_answer_is_lost_is_ones_own(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a")
    with faults.answer_lost(aws, taking):
        world.deliver()
    assert told(world, "a") == [("succeeded", None)]
    assert running(world) == 0


@pytest.mark.parametrize(
    "match", [taking, lambda call: call.name == "dynamodb:GetItem" and "limit" in str(call.params)]
)
def test_an_error_at_the_place_uses_up_no_attempt(aws: Aws, clock: ManualClock, match: Any) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a", max_attempts=1)
    with faults.refusing(match) as refused:
        world.deliver()
    assert refused.refused == 1
    settle(world)
    assert told(world, "a") == [("succeeded", None)]
    assert [call.attempt for call, _ in world.target.calls] == [1]


# Executors that sleep


@pytest.fixture
def sleepers() -> Iterator[Callable[[World], Sleeper]]:
    with sleeping() as make:
        yield make


def test_a_sleeper_is_ended_as_lost_before_its_place_is_taken(
    aws: Aws, clock: ManualClock, sleepers: Callable[[World], Sleeper]
) -> None:
    """Its lease is over but nobody has taken its run over: it could renew it, and be live again."""
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "sleeps")
    sleeper = sleepers(world)
    clock.advance(66)
    world.receive()  # its message, which nobody delivers
    submit(world, "b")
    world.deliver()
    assert told(world, "b") == [("succeeded", None)]
    assert told(world, "sleeps") == [("failed", None)]
    sleeper.renew()
    assert sleeper.signals.stop.is_set()
    assert sleeper.end().outcome == "lease_lost"
    assert [attempt.outcome for attempt in world.runs("sleeps")[0].attempts] == ["lost"]


def test_a_sleeper_that_wakes_and_renews_in_time_keeps_its_place(
    aws: Aws, clock: ManualClock, sleepers: Callable[[World], Sleeper]
) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "sleeps")
    sleeper = sleepers(world)
    clock.advance(66)
    sleeper.renew()
    submit(world, "b")
    assert sorted(str(one.ended.outcome) for one in world.deliver()) == ["put_back", "waiting"]
    assert sleeper.end().outcome == "succeeded"
    assert running(world) == 0


def test_a_sleeper_that_renews_as_it_is_found_keeps_its_place(
    aws: Aws, clock: ManualClock, sleepers: Callable[[World], Sleeper]
) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "sleeps")
    sleeper = sleepers(world)
    clock.advance(66)
    world.receive()
    submit(world, "b")

    class Renewing(faults._Nth):
        def answer(self, call: AwsCall) -> None:
            if self.hit(call):
                sleeper.renew()

    losing = Renewing(
        lambda call: (
            call.operation == "UpdateItem"
            and "':lease'" not in str(call.params)
            and "#attempts = :attempts, #retry_at = :now" in call.params["UpdateExpression"]
        )
    )
    with calls.observing(losing):
        assert [one.ended.outcome for one in world.deliver()] == ["waiting"]
    assert losing.seen == 1
    assert not sleeper.signals.stop.is_set()
    assert sleeper.end().outcome == "succeeded"


def test_the_next_attempt_of_a_sleepers_run_takes_over_its_place(
    aws: Aws, clock: ManualClock, sleepers: Callable[[World], Sleeper]
) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a")
    sleeper = sleepers(world)
    clock.advance(66)
    world.pass_time(60, step_s=5)
    assert told(world, "a") == [("succeeded", None)]
    assert [attempt.outcome for attempt in world.runs("a")[0].attempts] == ["lost", "succeeded"]
    assert sleeper.end().outcome == "lease_lost"
    assert running(world) == 0


def test_a_sleeper_that_ends_late_gives_back_its_own_place_only(
    aws: Aws, clock: ManualClock, sleepers: Callable[[World], Sleeper]
) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a")
    first = sleepers(world)
    clock.advance(66)
    second = sleepers(world)  # the next attempt of the same run
    assert first.end().outcome == "lease_lost"
    assert running(world) == 1
    submit(world, "b")
    assert [one.ended.outcome for one in world.executor.run(world.receive())] == ["waiting"]
    assert second.end().outcome == "succeeded"
    assert running(world) == 0


def test_a_sleepers_run_waits_when_the_limit_was_lowered_under_it(
    aws: Aws, clock: ManualClock, sleepers: Callable[[World], Sleeper]
) -> None:
    world = World(aws, clock)
    limit(world, 2)
    submit(world, "a")
    sleeper = sleepers(world)
    submit(world, "b", run_at="2026-11-30T11:58:01Z")
    clock.advance(2)

    def others(run: LongRun) -> None:
        limit(world, 1)
        for _ in range(7):
            run.beat(10)
        world.deliver()  # attempt 2 of a: its own place is no more, and b has the only one
        assert told(world, "a") == [("enqueued", "group_limit")]
        assert running(world) == 1

    LongRun(world, others).make()
    sleeper.end()
    settle(world)
    assert told(world, "a", "b") == [("succeeded", None)] * 2


# Cancel, pause, and both gates


def test_a_run_that_waits_for_a_place_is_ended_by_a_cancel(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a", "b")

    def others(run: LongRun) -> None:
        run.beat(1)
        world.deliver()
        waits = "b" if told(world, "b") == [("enqueued", "group_limit")] else "a"
        world.cancel(waits)
        assert told(world, waits) == [("cancelled", "cancelled")]

    held_by(world, others)
    settle(world)
    assert world.target.calls == []


def test_a_run_that_waits_for_its_group_keeps_the_place_of_its_job(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 1)
    submit(world, "a")
    world.submit(job_id="b", every="20s", max_runs=2, overlap="skip", group="g")

    def others(run: LongRun) -> None:
        for _ in range(5):
            run.beat(10)
            world.deliver()
        assert told(world, "b") == [("enqueued", "group_limit"), ("skipped", "overlap")]

    held_by(world, others)
    settle(world)
    assert told(world, "b") == [("succeeded", None), ("skipped", "overlap")]


def test_holders_whose_lease_was_renewed_are_looked_at_ten_at_a_time(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    limit(world, 14)
    submit(world, *[f"j{number}" for number in range(15)])

    def others(run: LongRun) -> None:
        run.beat(1)
        with faults.logging() as log:
            (one,) = world.deliver()
        assert one.ended.outcome == "waiting"
        assert log.of("dynamodb:BatchGetItem") == []  # all first leases hold
        clock.advance(66)
        with faults.logging() as log:
            world.executor.run(world.receive()[:1])
        (batch,) = log.of("dynamodb:BatchGetItem")
        assert [len(request["Keys"]) for request in batch.asked["RequestItems"].values()] == [10]

    held_by(world, others, 14)
