"""Runs that may not overlap: skip, queue and replace; through retries, crashes, redrives and a change of the policy."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.model.call import Call
from shared.model.run import Outcome, Result
from tests.support import calls, faults
from tests.support.aws import Aws, dead_letters, messages_waiting
from tests.support.calls import Call as AwsCall
from tests.support.clocks import ManualClock
from tests.support.long_runs import LongRun
from tests.support.sleepers import Sleeper, sleeping
from tests.support.world import SUCCEED, World, failure

POLICIES = ("skip", "queue", "replace")
TOLD = Result(outcome=Outcome.CANCELLED, error="ended because the run was cancelled")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def every_20_s(world: World, overlap: str, **more: Any) -> None:
    """Job `a`: due at 11:58:20, :40, 11:59:00 and so on; time is at the first."""
    world.submit(job_id="a", **{"every": "20s", "max_runs": 4, "overlap": overlap, "base_s": 5, **more})
    world.clock.advance(20)


def told(world: World, job_id: str = "a") -> list[tuple[str, str | None]]:
    """The runs' states and reasons, oldest first."""
    return [(str(run.status), run.reason) for run in world.runs(job_id)]


def hold(run: LongRun, seconds: int) -> None:
    """Go on for so long, with heartbeats, while all other messages are delivered."""
    for _ in range(seconds // 10):
        run.beat(10)
        run.world.deliver()


def settle(world: World, seconds: int = 120) -> None:
    """Until no message is left."""
    for _ in range(seconds):
        world.clock.advance(1)
        world.deliver()
        if set(messages_waiting(world.aws).values()) == {0}:
            return
    raise AssertionError(f"messages are left: {messages_waiting(world.aws)}")


# C38 Runs longer than the period


def test_c38_skip_leaves_out_what_comes_while_a_run_goes_on(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "skip", timeout_s=100)
    LongRun(world, lambda run: hold(run, 50)).make()
    settle(world)
    assert told(world) == [("succeeded", None), ("skipped", "overlap"), ("skipped", "overlap"), ("succeeded", None)]
    assert world.show("a").overlap_skipped == 2
    assert [(run.attempt, run.attempts) for run in world.runs("a")[1:3]] == [(0, ())] * 2


def test_c38_queue_lets_one_wait_and_no_backlog_comes_after(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "queue", timeout_s=100)

    def handler(run: LongRun) -> None:
        hold(run, 50)
        assert told(world)[1:] == [("enqueued", "overlap"), ("skipped", "overlap")]

    LongRun(world, handler).make()
    ended_at = clock.now()
    settle(world)
    assert told(world) == [("succeeded", None), ("succeeded", None), ("skipped", "overlap"), ("succeeded", None)]
    ((_, called_at),) = [(call, when) for call, when in world.target.calls if call.scheduled_for == at("11:58:40")]
    assert called_at - ended_at <= timedelta(seconds=15)
    assert world.show("a").overlap_skipped == 1


def test_c38_replace_cancels_the_run_that_goes_on(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "replace", timeout_s=100)

    def handler(run: LongRun) -> Result:
        hold(run, 20)
        assert not run.is_cancelled()
        run.beat(10)
        assert run.is_cancelled()  # 11:58:40 has come
        return TOLD

    LongRun(world, handler).make()
    settle(world)
    assert told(world) == [("cancelled", "replaced")] + [("succeeded", None)] * 3
    assert world.show("a").overlap_skipped == 0
    assert dead_letters(aws) == []


def test_replace_the_newest_goes_on_and_those_in_between_are_skipped(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "replace", timeout_s=100)
    LongRun(world, lambda run: hold(run, 60)).make()  # never looks, and succeeds
    settle(world)
    assert told(world) == [("succeeded", None), ("skipped", "overlap"), ("skipped", "overlap"), ("succeeded", None)]
    assert world.show("a").overlap_skipped == 2


def test_allow_runs_them_side_by_side_and_reads_nothing_for_it(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "allow", timeout_s=100)
    with faults.logging() as log:
        LongRun(world, lambda run: hold(run, 50)).make()
        world.show("a")
    assert [call for call in log.seen if "'overlap'" in str(call.params.get("Key"))] == []
    assert told(world)[:3] == [("succeeded", None)] * 3


# Retries


def failing_once(call: Call) -> Result:
    return failure() if call.attempt == 1 and call.scheduled_for == at("11:58:20") else SUCCEED


@pytest.mark.parametrize(
    ("policy", "second"), [("skip", ("skipped", "overlap")), ("queue", ("succeeded", None))], ids=["skip", "queue"]
)
def test_a_run_keeps_the_place_while_it_waits_for_its_retry(
    aws: Aws, clock: ManualClock, policy: str, second: tuple[str, str | None]
) -> None:
    world = World(aws, clock)
    world.target.script = failing_once
    every_20_s(world, policy, base_s=30, max_runs=2)
    settle(world)
    assert told(world) == [("succeeded", None), second]
    order = [(call.scheduled_for, call.attempt) for call, _ in world.target.calls]
    assert order[:2] == [(at("11:58:20"), 1), (at("11:58:20"), 2)]


def test_replace_ends_a_run_that_waits_for_its_retry_at_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = failing_once
    every_20_s(world, "replace", base_s=300, max_runs=2)
    world.deliver()
    clock.advance(20)
    world.deliver()
    assert told(world) == [("cancelled", "replaced"), ("succeeded", None)]
    assert world.target.calls[-1][1] == at("11:58:40")
    clock.advance(400)
    world.deliver()
    assert len(world.target.calls) == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_a_dead_lettered_run_frees_the_place(aws: Aws, clock: ManualClock, policy: str) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.scheduled_for == at("11:58:20") else SUCCEED
    every_20_s(world, policy, base_s=1, max_attempts=2)
    settle(world)
    assert told(world) == [("dead_lettered", None)] + [("succeeded", None)] * 3


# Crashes


@pytest.mark.parametrize("policy", ["skip", "queue"])
@pytest.mark.parametrize("max_attempts", [1, 2])
def test_a_run_stuck_behind_a_dead_executor_frees_itself_at_the_end_of_its_lease(
    aws: Aws, clock: ManualClock, policy: str, max_attempts: int
) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, max_attempts=max_attempts, max_runs=2)
    with faults.crash(before=lambda call: call.name == "dynamodb:UpdateItem" and "':result'" in str(call.params)):
        world.deliver()  # the handler is done, and the executor dies before it writes so
    assert told(world) == [("running", None)]
    world.pass_time(45, step_s=1)
    (second,) = told(world)[1:]
    assert second == (("skipped", "overlap") if policy == "skip" else ("enqueued", "overlap"))
    settle(world)
    first = "succeeded" if max_attempts == 2 else "dead_lettered"
    assert told(world) == [(first, None), second if policy == "skip" else ("succeeded", None)]


def test_a_run_that_was_replaced_and_whose_executor_died_is_not_called_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "replace", max_runs=2)
    with faults.crash(before=lambda call: call.name == "dynamodb:UpdateItem" and "':result'" in str(call.params)):
        world.deliver()
    settle(world)
    assert told(world) == [("cancelled", "replaced"), ("succeeded", None)]
    assert [call.scheduled_for for call, _ in world.target.calls] == [at("11:58:20"), at("11:58:40")]
    assert world.target.calls[1][1] - at("11:58:20") <= timedelta(seconds=65 + 15 + 2)


def is_place(call: Any) -> bool:
    return call.operation == "PutItem" and call.params["Item"]["sk"]["S"] == "overlap"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_executor_that_dies_as_it_takes_the_place(aws: Aws, clock: ManualClock, policy: str, when: str) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, max_runs=1)
    with faults.crash(**{when: is_place}):  # type: ignore[arg-type]
        world.deliver()
    settle(world)
    assert told(world) == [("succeeded", None)]
    assert [attempt.outcome for attempt in world.runs("a")[0].attempts] == ["lost", "succeeded"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_place_whose_answer_is_lost_is_ones_own(aws: Aws, clock: ManualClock, policy: str) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, max_runs=1)
    with faults.answer_lost(aws, is_place):
        world.deliver()
    assert told(world) == [("succeeded", None)]
    assert len(world.target.calls) == 1


def test_a_skip_whose_answer_is_lost_is_counted_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "skip", max_runs=2, timeout_s=100)

    def handler(run: LongRun) -> None:
        with faults.answer_lost(aws, is_place):
            hold(run, 20)

    LongRun(world, handler).make()
    assert told(world)[1:] == [("skipped", "overlap")]
    assert world.show("a").overlap_skipped == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_an_error_at_the_place_uses_up_no_attempt(aws: Aws, clock: ManualClock, policy: str) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, max_runs=1, max_attempts=1)
    with faults.refusing(is_place) as refused:
        world.deliver()
    assert refused.refused == 1
    settle(world)
    assert told(world) == [("succeeded", None)]
    assert [call.attempt for call, _ in world.target.calls] == [1]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_message_that_comes_twice_changes_nothing(aws: Aws, clock: ManualClock, policy: str) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, max_runs=2, timeout_s=100)
    (again,) = world.receive()
    other = world.new_executor()

    def handler(run: LongRun) -> None:
        assert [one.ended.outcome for one in other.run([again])] == ["put_back"]
        hold(run, 30)
        other.run([again])

    world.executor.queue.hide([(again.receipt, 0)])
    clock.advance(1)
    LongRun(world, handler).make()
    settle(world)
    expected = {"skip": ("skipped", "overlap"), "queue": ("succeeded", None), "replace": ("succeeded", None)}
    assert told(world) == [("succeeded", None), expected[policy]]


# What users ask for


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("skip", ("skipped", "overlap")), ("queue", ("succeeded", None)), ("replace", ("succeeded", None))],
)
def test_a_triggered_run_is_one_like_any_other(
    aws: Aws, clock: ManualClock, policy: str, expected: tuple[str, str | None]
) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, every="10m", timeout_s=100, max_runs=1)
    world.clock.set(at("12:08"))

    def handler(run: LongRun) -> None:
        world.trigger("a")
        hold(run, 20)

    world.tick()
    world.clock.set(at("12:08:05"))
    LongRun(world, handler).make()
    settle(world)
    assert told(world) == [("succeeded", None), expected]


@pytest.mark.parametrize("policy", ["skip", "queue"])
def test_a_redriven_run_waits_for_the_one_that_goes_on_and_is_not_skipped(
    aws: Aws, clock: ManualClock, policy: str
) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    every_20_s(world, policy, max_attempts=1, max_runs=3, timeout_s=100)
    world.deliver()
    assert told(world) == [("dead_lettered", None)]

    def handler(run: LongRun) -> None:
        world.redrive("a", at("11:58:20"))
        hold(run, 30)
        assert told(world)[0] == ("enqueued", "overlap")

    clock.advance(20)
    LongRun(world, handler).make()
    settle(world)
    # The run that waits has its turn before one that comes later.
    assert told(world)[:2] == [("succeeded", None)] * 2
    assert told(world)[2] == ("skipped", "overlap")


def test_a_run_that_was_dead_lettered_and_is_redriven_keeps_others_out_again(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    every_20_s(world, "skip", max_attempts=1, max_runs=2, timeout_s=100)
    world.deliver()
    world.redrive("a", at("11:58:20"))
    LongRun(world, lambda run: hold(run, 20)).make()
    assert told(world) == [("succeeded", None), ("skipped", "overlap")]


def test_a_run_is_redriven_while_another_takes_its_place(aws: Aws, clock: ManualClock) -> None:
    """The other has read that it is over: what it then writes must find that it is not."""
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    every_20_s(world, "skip", max_attempts=1, max_runs=2, timeout_s=100)
    world.deliver()
    clock.advance(20)
    batch = world.receive()

    class Redriving(faults._Nth):
        def answer(self, call: AwsCall) -> None:
            if self.hit(call):
                world.redrive("a", at("11:58:20"))
                made.append(make(world))

    made: list[Sleeper] = []
    with sleeping() as make:
        with calls.observing(Redriving(is_place)):
            assert [one.ended.outcome for one in world.executor.run(batch)] == ["overlap"]
        assert told(world) == [("running", None), ("skipped", "overlap")]
        assert made[0].end().outcome == "succeeded"
    assert [call.scheduled_for for call, _ in world.target.calls] == [at("11:58:20")]


@pytest.mark.parametrize("how", ["cancel", "pause"])
def test_a_run_that_waits_is_ended_by_a_cancel_and_by_a_pause(aws: Aws, clock: ManualClock, how: str) -> None:
    world = World(aws, clock)
    every_20_s(world, "queue", timeout_s=100)

    def handler(run: LongRun) -> None:
        hold(run, 20)
        assert told(world)[1] == ("enqueued", "overlap")
        getattr(world, how)("a")
        hold(run, 20)

    LongRun(world, handler).make()
    settle(world)
    assert len(world.target.calls) == 0  # the long one is not the scripted target's
    state, reason = told(world)[1]
    assert (state, reason) == (("cancelled", "cancelled") if how == "cancel" else ("skipped", "paused"))


def test_a_run_that_waits_longer_than_its_deadline_expires(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "queue", timeout_s=100, deadline_s=10, max_runs=2)
    LongRun(world, lambda run: hold(run, 50)).make()
    settle(world)
    assert told(world) == [("succeeded", None), ("skipped", "expired")]


# A change of the policy holds from the next run that starts


@pytest.mark.parametrize(
    ("policy", "second"),
    [("skip", ("skipped", "overlap")), ("queue", ("enqueued", "overlap")), ("replace", ("enqueued", "overlap"))],
)
def test_a_policy_that_is_set_while_runs_go_on_sees_them(
    aws: Aws, clock: ManualClock, policy: str, second: tuple[str, str | None]
) -> None:
    """Two of them: the third begins after both are over."""
    world = World(aws, clock)
    every_20_s(world, "allow", timeout_s=100, max_runs=4)

    def inner(run: LongRun) -> None:
        world.patch("a", overlap=policy)
        hold(run, 20)
        assert told(world)[2] == second

    def outer(run: LongRun) -> None:
        run.beat(20)
        LongRun(world, inner).make()  # 11:58:40 beside 11:58:20
        run.beat(5)
        world.deliver()
        assert told(world)[2] == second  # 11:58:20 still goes on
        assert world.target.calls == []

    LongRun(world, outer).make()
    settle(world)
    third = {"skip": ("skipped", "overlap"), "queue": ("succeeded", None), "replace": ("succeeded", None)}[policy]
    assert told(world) == [("succeeded", None), ("succeeded", None), third, ("succeeded", None)]


def test_replace_set_while_runs_go_on_cancels_them_all(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "allow", timeout_s=100, max_runs=3)

    def inner(run: LongRun) -> Result:
        world.patch("a", overlap="replace")
        hold(run, 30)
        assert run.is_cancelled()
        return TOLD

    def outer(run: LongRun) -> Result:
        run.beat(20)
        LongRun(world, inner).make()
        run.beat(1)
        assert run.is_cancelled()
        return TOLD

    LongRun(world, outer).make()
    settle(world)
    assert told(world) == [("cancelled", "replaced"), ("cancelled", "replaced"), ("succeeded", None)]


def test_a_retry_of_a_run_that_began_under_allow_keeps_the_others_out(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = failing_once
    every_20_s(world, "allow", base_s=30, max_runs=2)
    world.deliver()
    world.patch("a", overlap="skip")
    settle(world)
    assert told(world) == [("succeeded", None), ("skipped", "overlap")]


def test_allow_set_while_a_run_goes_on_and_others_wait_lets_them_go(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "queue", timeout_s=100, max_runs=2)

    def handler(run: LongRun) -> None:
        hold(run, 20)
        world.patch("a", overlap="allow")
        hold(run, 20)
        assert told(world)[1] == ("succeeded", None)

    LongRun(world, handler).make()


def test_allow_in_between_is_seen_when_the_policy_is_set_again(aws: Aws, clock: ManualClock) -> None:
    """A run of `skip` that waits for its retry has the place, and yet must not go on beside one of `allow`."""
    world = World(aws, clock)
    world.target.script = failing_once
    every_20_s(world, "skip", base_s=30, max_runs=2, timeout_s=100)
    world.deliver()
    clock.advance(20)

    def handler(run: LongRun) -> None:
        world.patch("a", overlap="skip")
        hold(run, 30)
        assert len(world.target.calls) == 1
        assert told(world)[0] == ("enqueued", "overlap")

    world.patch("a", overlap="allow")
    LongRun(world, handler).make()
    settle(world)
    assert told(world) == [("succeeded", None), ("succeeded", None)]
    assert len(world.target.calls) == 2


def test_another_change_of_the_job_costs_one_look_at_its_runs_and_changes_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "skip", timeout_s=100, max_runs=4)

    def handler(run: LongRun) -> None:
        world.patch("a", name="new")
        with faults.logging() as log:
            hold(run, 40)
        assert log.names().count("dynamodb:Query") == 1

    LongRun(world, handler).make()
    settle(world)
    assert told(world) == [("succeeded", None)] + [("skipped", "overlap")] * 2 + [("succeeded", None)]


# What it costs, and the id's next job


def test_a_look_costs_one_start_one_put_back_and_at_most_one_write_of_the_place(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "queue", timeout_s=100, max_runs=2)
    looks: list[list[str]] = []

    def handler(run: LongRun) -> None:
        run.beat(20)
        for _ in range(3):
            with faults.logging() as log:
                assert len(world.deliver()) == 1
            looks.append([name for name in log.names() if re.search("Put|Update|Delete", name)])
            run.beat(15)

    LongRun(world, handler).make()
    start_and_park = ["dynamodb:UpdateItem"] * 2
    assert [sorted(look) for look in looks] == [["dynamodb:PutItem", *start_and_park], start_and_park, start_and_park]


def test_waits_grow_to_15_s(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "queue", timeout_s=105, max_runs=2)
    waits: list[float] = []

    def handler(run: LongRun) -> None:
        run.beat(20)
        for _ in range(7):
            (one,) = world.deliver()
            assert one.ended.outcome == "waiting"
            waits.append(one.ended.back_s or 0)
            run.beat(waits[-1] + 1)

    LongRun(world, handler).make()
    assert waits[0] == 1
    assert all(7.5 <= wait_s <= 15 for wait_s in waits[4:])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_next_job_of_an_id_begins_with_nothing_skipped(aws: Aws, clock: ManualClock, policy: str) -> None:
    world = World(aws, clock)
    every_20_s(world, policy, timeout_s=100, max_runs=3)
    LongRun(world, lambda run: hold(run, 40)).make()
    settle(world)
    assert world.show("a").overlap_skipped == (2 if policy == "skip" else 1)
    world.submit(job_id="a", every="20s", max_runs=1, overlap=policy)
    assert world.show("a").overlap_skipped == 0
    settle(world, 40)
    assert told(world)[-1] == ("succeeded", None)
    assert world.show("a").overlap_skipped == 0


def test_the_place_is_kept_as_long_as_the_history(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    every_20_s(world, "skip", max_runs=1)
    world.deliver()
    (item,) = world.items("overlap")
    assert int(item["ttl"]["N"]) == int((clock.now() + timedelta(days=30)).timestamp())
