"""Cancel of a run that is going on: told at a heartbeat, stopped at the next, and what is written of each end."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.flows.workshop import Ended
from shared.model.job import JobSpec, Schedule, Target
from shared.model.run import Outcome, Result, Run
from tests.support import calls, faults
from tests.support.aws import Aws, dead_letters, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.long_runs import STOPPED, LongRun
from tests.support.python_targets import running
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

RUN_WRITE = faults.writes("run#")
DEMO = Path(__file__).parents[2] / "handlers"
KEPT = Result(outcome=Outcome.SUCCEEDED, result='{"rows":7}')
TIMED_OUT = Result(outcome=Outcome.TIMED_OUT, error="did not finish within 100 s")
DIED = Result(outcome=Outcome.LOST, error="the process exited with code 1 before the handler returned")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


def run_of_a(world: World, script: Callable[[LongRun], Result | None], **more: Any) -> tuple[Ended, Run]:
    """Job `a` (timeout 100 s, three attempts) is due and is made; the run as it is then."""
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", **{"timeout_s": 100, **more})
    ended = LongRun(world, script).make()
    (run,) = world.runs("a")
    return ended, run


def cancelled(world: World) -> None:
    view = world.cancel("a")
    assert (view.status, [run.scheduled_for for run in view.running]) == ("running", [START])


def is_over_as_cancelled(world: World, ended: Ended, run: Run) -> bool:
    """No dead letter, no message, no further attempt, however much time passes."""
    assert (ended.done, run.status, run.reason) == (True, "cancelled", "cancelled")
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 0, "flight": 0}
    world.pass_time(300, step_s=60)
    assert world.runs("a") == [run]
    assert world.show("a").status == "cancelled"
    return dead_letters(world.aws) == []


# The handler is told


@pytest.mark.parametrize("timeout_s", [50, 100], ids=["its lease holds", "its lease is renewed"])
def test_a_handler_is_told_at_the_heartbeat_after_the_cancel(aws: Aws, clock: ManualClock, timeout_s: int) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        run.beat()
        assert not run.is_cancelled()
        cancelled(world)
        assert not run.is_cancelled()
        run.beat()
        assert (run.is_cancelled(), run.is_stopped) == (True, False)
        return KEPT

    ended, run = run_of_a(world, handler, timeout_s=timeout_s)
    assert is_over_as_cancelled(world, ended, run)
    assert (ended.outcome, run.result) == ("cancelled", '{"rows":7}')
    (attempt,) = run.attempts
    assert (attempt.outcome, attempt.error, attempt.error_kind) == ("cancelled", None, None)
    assert attempt.finished_at == clock.now() - timedelta(seconds=300)


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_a_handler_that_was_told_and_raises_is_cancelled(aws: Aws, clock: ManualClock, max_attempts: int) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        assert run.is_cancelled()
        return Result(outcome=Outcome.FAILED, error="Interrupted: row 7", error_kinds=("Interrupted", "Exception"))

    ended, run = run_of_a(world, handler, max_attempts=max_attempts)
    assert is_over_as_cancelled(world, ended, run)
    (attempt,) = run.attempts
    assert (attempt.outcome, attempt.error, attempt.error_kind) == ("cancelled", "Interrupted: row 7", "Interrupted")


@pytest.mark.parametrize("result", [TIMED_OUT, DIED], ids=["timed_out", "lost"])
@pytest.mark.parametrize("max_attempts", [1, 3])
def test_a_handler_that_was_told_and_ended_otherwise_keeps_its_outcome(
    aws: Aws, clock: ManualClock, result: Result, max_attempts: int
) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        assert run.is_cancelled()
        return result

    ended, run = run_of_a(world, handler, max_attempts=max_attempts)
    assert is_over_as_cancelled(world, ended, run)
    assert [(a.outcome, a.error) for a in run.attempts] == [(result.outcome, result.error)]


def test_a_handler_that_never_looked_and_returned_has_succeeded(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        return KEPT

    ended, run = run_of_a(world, handler)
    assert (ended.done, run.status, run.reason, run.result) == (True, "succeeded", None, '{"rows":7}')
    assert run.attempts[0].outcome == "succeeded"


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_a_handler_that_never_looked_and_failed_has_failed_for_the_last_time(
    aws: Aws, clock: ManualClock, max_attempts: int
) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        return failure("by itself")

    ended, run = run_of_a(world, handler, max_attempts=max_attempts)
    assert is_over_as_cancelled(world, ended, run)
    assert [(attempt.outcome, attempt.error) for attempt in run.attempts] == [("failed", "by itself")]


# The handler does not end: it is stopped


@pytest.mark.parametrize("max_attempts", [1, 3])
@pytest.mark.parametrize("looks", [True, False])
def test_a_handler_that_goes_on_is_stopped_a_heartbeat_later(
    aws: Aws, clock: ManualClock, max_attempts: int, looks: bool
) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        assert not run.is_stopped
        assert not looks or run.is_cancelled()
        run.beat()
        assert run.is_stopped
        return STOPPED

    ended, run = run_of_a(world, handler, max_attempts=max_attempts)
    assert is_over_as_cancelled(world, ended, run)
    assert [(attempt.outcome, attempt.error) for attempt in run.attempts] == [("cancelled", STOPPED.error)]


def test_a_handler_that_had_finished_when_it_was_stopped_has_succeeded(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        run.beat()
        assert run.is_stopped
        return KEPT

    _, run = run_of_a(world, handler)
    assert (run.status, run.result) == ("succeeded", '{"rows":7}')


def test_a_target_that_is_slow_to_stop_keeps_its_lease(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        for _ in range(4):
            run.beat()
        return STOPPED

    _, run = run_of_a(world, handler, timeout_s=200)
    assert run.attempts[0].lease_expires_at == START + timedelta(seconds=80 + 65)


def test_i5_a_cancel_that_is_seen_before_the_call_is_told_at_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", timeout_s=100)
    told: list[bool] = []

    class ReadsSlowly(calls.Observer):
        order = calls.LOG

        def on_answer(self, call: calls.Call) -> None:
            if call.operation == "GetItem":  # the job was read, then is cancelled, and its lease is short by now
                calls.remove(self)
                clock.advance(50)
                world.cancel("a")

    calls.add(ReadsSlowly())
    LongRun(world, lambda run: told.append(run.is_cancelled()) or STOPPED).make()  # type: ignore[func-returns-value]
    assert told == [True]
    assert world.statuses("a") == ["cancelled"]


# What is not a cancel of this run


def test_a_cancel_of_the_job_before_does_not_end_the_run_of_the_same_id(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
    world.cancel("a")
    clock.advance(1)

    def handler(run: LongRun) -> Result:
        with calls.unseen():
            world.aws.dynamodb.update_item(  # a mark that was on its way since
                TableName=aws.table,
                Key={"pk": {"S": "job#a"}, "sk": {"S": "run#2026-11-30T11:58:01"}},
                UpdateExpression="SET cancel_requested = :two",
                ExpressionAttributeValues={":two": {"N": "2"}},
            )
        run.beat()
        run.beat()
        assert (run.is_cancelled(), run.is_stopped) == (False, False)
        return KEPT

    world.submit(job_id="a", run_at="2026-11-30T11:58:01Z", timeout_s=100)
    LongRun(world, handler).make()
    assert world.statuses("a") == ["succeeded"]


def test_the_id_is_free_again_once_its_run_was_stopped(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        run.beat()
        run.beat()
        return STOPPED

    run_of_a(world, handler)
    world.submit(job_id="a", run_at="2026-11-30T12:00:00Z")
    clock.set(at("12:00"))
    world.deliver()
    assert world.statuses("a") == ["cancelled", "succeeded"]


# What a heartbeat costs, and what it finds


def heartbeats(log: faults.Log) -> list[str]:
    """The calls on the run between its start and its end."""
    return [call.operation for call in log.seen if "run#" in str(call.asked.get("Key"))][1:-1]


def test_a_run_shorter_than_a_heartbeat_makes_no_call_for_it(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    with faults.logging() as log:
        world.deliver()
    assert [call.operation for call in log.seen if call.service == "dynamodb"] == [
        "UpdateItem",
        "GetItem",
        "UpdateItem",
    ]


@pytest.mark.parametrize(("timeout_s", "operation"), [(50, "GetItem"), (100, "UpdateItem")])
def test_a_heartbeat_is_one_call_and_a_write_only_where_the_lease_needs_it(
    aws: Aws, clock: ManualClock, timeout_s: int, operation: str
) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        run.beat()
        run.beat()
        return SUCCEED

    with faults.logging() as log:
        run_of_a(world, handler, timeout_s=timeout_s)
    assert heartbeats(log) == [operation] * 2
    for call in log.of("dynamodb:GetItem"):
        assert call.asked["ConsistentRead"] is True


@pytest.mark.parametrize("timeout_s", [50, 100])
def test_i2_a_lease_that_was_taken_over_stops_at_once_and_nothing_is_written(
    aws: Aws, clock: ManualClock, timeout_s: int
) -> None:
    world = World(aws, clock)

    def handler(run: LongRun) -> Result:
        clock.advance(1000)
        world.target.script = lambda call: SUCCEED
        world.deliver()  # attempt 2, by another executor
        run.beat(0)
        assert run.is_stopped
        return STOPPED

    ended, run = run_of_a(world, handler, timeout_s=timeout_s)
    assert (ended.done, ended.outcome) == (False, "lease_lost")
    assert (run.status, [attempt.outcome for attempt in run.attempts]) == ("succeeded", ["lost", "succeeded"])


@pytest.mark.parametrize(("timeout_s", "operation"), [(50, "GetItem"), (100, "UpdateItem")])
def test_a_heartbeat_that_fails_is_reported_and_stops_only_what_may_have_lost_its_lease(
    aws: Aws, clock: ManualClock, timeout_s: int, operation: str
) -> None:
    world = World(aws, clock)

    def refused(run: LongRun, after_s: float) -> None:
        with faults.refusing(f"dynamodb:{operation}"), pytest.raises(Exception, match="made up by the test"):
            run.beat(after_s)

    def handler(run: LongRun) -> Result:
        cancelled(world)
        refused(run, 20)
        assert (run.is_cancelled(), run.is_stopped) == (False, False)
        refused(run, 100)
        assert run.is_stopped
        return KEPT

    ended, run = run_of_a(world, handler, timeout_s=timeout_s)
    assert (ended.outcome, run.status) == ("lease_lost", "running")


def test_a_heartbeat_that_breaks_is_its_runs_own_trouble(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    for job_id in ("breaks", "goes-on"):
        world.submit(job_id=job_id, run_at="2026-11-30T11:58:00Z", timeout_s=100)
    broken = threading.Event()

    class Breaks(calls.Observer):
        order = calls.FAULTS

        def answer(self, call: calls.Call) -> None:
            is_renewal = str(call.asked.get("UpdateExpression")).startswith("SET #lease_expires_at")
            if is_renewal and "breaks" in str(call.asked["Key"]):
                broken.set()
                raise ZeroDivisionError

    def script(call: Any) -> Result:
        if call.job_id == "goes-on":
            until(broken.is_set)
            clock.advance(20)
            until(lambda: world.runs("goes-on")[0].lease_expires_at == clock.now() + timedelta(seconds=65))
        else:
            until(lambda: world.runs("goes-on")[0].status == "succeeded")
        return SUCCEED

    world.target.script = script
    with calls.observing(Breaks()):
        handled = world.new_executor(renew_every_s=0.05).run(world.receive())
    assert [one.ended.outcome for one in handled] == ["succeeded"] * 2


# With real processes, and the executor's own keeper


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("not reached within 20 s")


@pytest.mark.parametrize(
    ("handler", "result", "error"),
    [("demo.sleep", '{"slept_s":', None), ("demo.stubborn", "", "ended because the run was cancelled")],
)
def test_the_demo_handlers_are_cancelled(
    aws: Aws, clock: ManualClock, handler: str, result: str, error: str | None
) -> None:
    world = World(aws, clock)
    spec = JobSpec(
        job_id="a",
        target=Target(kind="python", params={"handler": handler}),
        schedule=Schedule(run_at=START),
        payload='{"s": 600}',
    )
    world.api.submit.submit(spec, clock.now())
    with running(DEMO) as target:
        target.load()
        executor = world.new_executor(target, renew_every_s=1)
        (message,) = world.receive()
        handled: list[Any] = []
        thread = threading.Thread(target=lambda: handled.extend(executor.run([message])))
        thread.start()
        until(lambda: world.show("a").status == "running")
        cancelled(world)
        thread.join(20)
    (run,) = world.runs("a")
    (attempt,) = run.attempts
    assert (run.status, run.reason, attempt.outcome, attempt.error) == ("cancelled", "cancelled", "cancelled", error)
    assert (run.result or "").startswith(result)
    assert [one.ended.done for one in handled] == [True]
    assert dead_letters(aws) == []
