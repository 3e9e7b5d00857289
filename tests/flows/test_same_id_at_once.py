"""The same id is submitted again while its cancel, or an executor of the old job, is still at work (I1, I5)."""

import contextlib
from collections.abc import Callable

import pytest

from shared.model.errors import ConflictError
from shared.model.run import Result, Run
from shared.queue import message_of
from tests.support import faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")


def reads_open_runs(call: faults.Call) -> bool:
    return call.name == "dynamodb:Query" and "FilterExpression" in call.params


def reads_job(call: faults.Call) -> bool:
    return call.name == "dynamodb:GetItem" and call.params["Key"]["sk"]["S"] == "job"


def replaces_job(call: faults.Call) -> bool:
    return call.operation == "PutItem" and ":revision" in call.params.get("ExpressionAttributeValues", {})


def before(match: faults.Match, act: Callable[[], object]) -> contextlib.AbstractContextManager[object]:
    """Just before the first matching call takes effect, `act` happens."""
    acted: list[bool] = []

    def judge(call: faults.Call) -> bool:
        if not acted and faults.matches(match, call):
            acted.append(True)
            act()
        return False

    return faults.refusing(judge)


def submit(world: World, **spec: float) -> None:
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", **spec)


def test_a_slow_cancel_leaves_the_run_of_the_next_job_of_its_id_alone(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)
    submit(world)
    world.receive()  # the old job's message stays with an executor that does nothing
    results: list[Result] = [SUCCEED, failure()]
    other.target.script = lambda call: results.pop()

    def next_job_fails_once() -> None:
        clock.advance(1)
        submit(other, base_s=5)
        other.deliver()
        assert other.statuses("a") == ["failed"]

    with before(reads_open_runs, next_job_fails_once):
        view = world.cancel("a")
    assert view.running == ()
    clock.advance(6)
    other.deliver()
    assert other.statuses("a") == ["succeeded"]


def test_a_void_start_that_a_cancel_marked_leaves_its_occurrence_to_the_next_job(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)
    submit(world)
    (received,) = world.receive()

    def next_job_and_start_of_the_old() -> None:
        clock.advance(1)
        submit(other)
        world.executor.workshop.runs.start(message_of(received.body), "dies", clock.now())

    with before(reads_open_runs, next_job_and_start_of_the_old):
        world.cancel("a")
    (run,) = world.runs("a")
    assert run.cancel_requested
    clock.advance(70)  # its lease is over
    world.acknowledge(world.executor.run([received]))
    world.pass_time(120)
    assert world.statuses("a") == ["succeeded"]


def test_a_submit_that_an_executor_of_the_old_job_came_before_is_refused(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)
    submit(world)
    with faults.crash(before=reads_open_runs):
        world.cancel("a")
    clock.advance(1)

    def old_message_ends_as_cancelled() -> None:
        with before(reads_job, lambda: world.cancel("a")):
            world.deliver()
        assert world.statuses("a") == ["cancelled"]

    with before(replaces_job, old_message_ends_as_cancelled), pytest.raises(ConflictError, match="try again"):
        submit(other)
    world.pass_time(200)
    assert world.show("a").status == "cancelled"
    assert world.target.counts() == other.target.counts() == {}


def test_a_submit_that_a_redrive_of_the_old_job_came_before_is_taken_back(aws: Aws, clock: ManualClock) -> None:
    world, other = World(aws, clock), World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", max_attempts=1)
    world.deliver()
    begun: list[Run] = []

    def redrive_begins() -> None:
        other.redrive("a", clock.now())
        (message,) = other.receive()
        begun.append(other.executor.workshop.runs.start(message_of(message.body), "other", clock.now()))

    with before(replaces_job, redrive_begins), pytest.raises(ConflictError, match="is just ending"):
        world.submit(job_id="a", run_at="2026-11-30T12:30:00Z")
    assert [run.attempt for run in begun] == [2]
    assert world.show("a").job.status == "cancelled"
    assert "due_key" not in world.items("job")[0]
