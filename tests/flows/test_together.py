"""A batch's starts, reads and successes in one request each: how many are made, and that each run is judged alone."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shared.flows import finishes
from shared.flows.execute import Handled, Received
from shared.model.call import Call
from shared.model.message import Message
from shared.model.run import Result, Run
from shared.queue import message_of
from shared.store import keys
from shared.store.run_batches import FirstStart
from tests.support import fault_injection, faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.fault_injection import cut_off, throttled
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

DUE = "2026-11-30T11:59:00Z"
TEN = [f"job-{n}" for n in range(10)]
BATCH, READS, SINGLE, READ = (
    f"dynamodb:{name}" for name in ("BatchExecuteStatement", "BatchGetItem", "UpdateItem", "GetItem")
)
STARTS = {"when": lambda call: call.params["Statements"][0]["Statement"].startswith("INSERT")}
ENDS = {"when": lambda call: call.params["Statements"][0]["Statement"].startswith("UPDATE")}


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine does not tear ends apart that come at once."""
    monkeypatch.setattr(finishes, "WINDOW", timedelta(seconds=20))


def world_of(aws: Aws, clock: ManualClock, job_ids: list[str], **spec: object) -> World:
    """With jobs that are due now, their messages in the queue."""
    world = World(aws, clock)
    for job_id in job_ids:
        world.submit(job_id=job_id, run_at=DUE, **spec)  # type: ignore[arg-type]
    clock.set(datetime.fromisoformat("2026-11-30T11:59:00+00:00"))
    return world


def requests(run: Callable[[], list[Handled]]) -> tuple[dict[str, str | None], dict[str, int]]:
    """The outcomes by job, and how many requests of DynamoDB were made."""
    with faults.logging() as log:
        handled = run()
    outcomes = {one.message.job_id: one.ended.outcome for one in handled if one.message}
    return outcomes, dict(Counter(name for name in log.names() if name.startswith("dynamodb:")))


@pytest.mark.usefixtures("unhurried")
def test_ten_quick_runs_take_one_start_one_read_and_one_end(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, TEN)
    outcomes, made = requests(lambda: world.executor.run(world.receive()))
    assert outcomes == dict.fromkeys(TEN, "succeeded")
    assert made == {BATCH: 2, READS: 1}
    assert world.target.counts() == Counter(TEN)
    for job_id in TEN:
        (run,) = world.runs(job_id)
        (attempt,) = run.attempts
        assert (run.status, run.lease_expires_at, attempt.outcome) == ("succeeded", None, "succeeded")
        assert (attempt.started_at, attempt.finished_at, run.result) == (clock.now(), clock.now(), "null")


def test_one_message_alone_makes_the_requests_of_one(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["a"])
    outcomes, made = requests(lambda: world.executor.run(world.receive()))
    assert (outcomes, made) == ({"a": "succeeded"}, {SINGLE: 2, READ: 1})


def test_a_long_payload_is_read_with_the_others_in_one_request_more(aws: Aws, clock: ManualClock) -> None:
    long = '"' + "x" * 600 + '"'
    world = world_of(aws, clock, ["a", "b"], payload=long)
    world.submit(job_id="short", run_at=DUE, payload="1")
    outcomes, made = requests(lambda: world.executor.run(world.receive()))
    assert set(outcomes.values()) == {"succeeded"}
    assert (made[READS], made.get(READ, 0)) == (2, 0)
    assert {call.job_id: call.payload for call, _ in world.target.calls} == {"a": long, "b": long, "short": "1"}


def test_two_runs_of_one_job_start_together_and_read_it_once(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", every="10s", max_runs=3)
    clock.advance(35)
    outcomes, made = requests(lambda: world.executor.run(world.receive()))
    assert (outcomes, made[READS], world.target.counts()) == ({"a": "succeeded"}, 1, {"a": 3})


# Each is judged alone


@pytest.mark.parametrize("code", ["ThrottlingError", "InternalServerError"])
@pytest.mark.parametrize("done", [False, True])
def test_i7_a_start_that_is_throttled_within_its_batch_is_made_alone(
    aws: Aws, clock: ManualClock, code: str, done: bool
) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    with fault_injection.injected() as broken:
        broken.partly(BATCH, [1], code=code, done=done, **STARTS)
        outcomes, made = requests(lambda: world.executor.run(batch))
    assert outcomes == dict.fromkeys("abc", "succeeded")
    assert made[READ] == 1  # after its own start
    assert [world.runs(job_id)[0].attempt for job_id in "abc"] == [1, 1, 1]
    assert world.target.counts() == Counter("abc")


def test_a_statement_that_is_refused_for_itself_is_told_of(aws: Aws, clock: ManualClock) -> None:
    """A form that DynamoDB does not take would cost each batch a request, for ever; a duplicate is no such thing."""
    world, told = world_of(aws, clock, ["a", "b"]), []
    batches = replace(world.executor.workshop.batches, problem=lambda error: told.append(str(error)))
    starts = [FirstStart(one, "worker") for one in (message_of(received.body) for received in world.receive())]
    assert None not in batches.start(starts, clock.now())
    assert batches.start(starts, clock.now()) == [None, None]
    assert told == []
    with fault_injection.injected() as broken:
        broken.partly(BATCH, [1], code="ValidationError", **STARTS)
        batches.start(starts, clock.now())
    assert [text.partition(":")[0] for text in told] == ["ValidationError"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_i7_a_batch_of_starts_that_fails_as_a_whole_is_made_one_by_one(aws: Aws, clock: ManualClock, when: str) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    with fault_injection.injected() as broken:
        getattr(broken, when)(BATCH, cut_off(), **STARTS)
        outcomes, _ = requests(lambda: world.executor.run(batch))
    assert outcomes == dict.fromkeys("abc", "succeeded")
    assert [world.runs(job_id)[0].attempt for job_id in "abc"] == [1, 1, 1]
    assert world.target.counts() == Counter("abc")


def test_i2_a_duplicate_within_a_batch_is_put_back_and_the_others_run(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    second, inside = world.new_executor(), list[Handled]()

    def script(call: Call) -> Result:
        if call.job_id == "a":
            inside.extend(second.run(batch[:1]))
        return SUCCEED

    world.target.script = script
    first = next(place for place, one in enumerate(batch) if '"a"' in one.body)
    batch[0], batch[first] = batch[first], batch[0]
    outcomes, _ = requests(lambda: world.executor.run(batch))
    assert outcomes == dict.fromkeys("abc", "succeeded")
    assert [one.ended.outcome for one in inside] == ["put_back"]
    again = [one.ended.outcome for one in world.executor.run(batch)]
    assert (again, world.target.counts()) == (["duplicate"] * 3, Counter("abc"))


@pytest.mark.parametrize("unread", [[1], [0, 1, 2]])
def test_a_job_that_the_read_leaves_out_is_read_alone(aws: Aws, clock: ManualClock, unread: list[int]) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    with fault_injection.injected() as broken:
        broken.partly(READS, unread)
        outcomes, made = requests(lambda: world.executor.run(batch))
    assert (outcomes, made[READ]) == (dict.fromkeys("abc", "succeeded"), len(unread))


def test_a_read_that_fails_is_made_one_by_one(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    with fault_injection.injected() as broken:
        broken.before(READS, throttled())
        outcomes, made = requests(lambda: world.executor.run(batch))
    assert (outcomes, made[READ]) == (dict.fromkeys("abc", "succeeded"), 3)


def test_a_job_that_is_gone_is_withdrawn_and_the_others_run(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    aws.dynamodb.delete_item(TableName=aws.table, Key={"pk": {"S": "job#b"}, "sk": {"S": "job"}})
    outcomes, _ = requests(lambda: world.executor.run(batch))
    assert outcomes == {"a": "succeeded", "b": "cancelled", "c": "succeeded"}
    assert world.target.counts() == Counter("ac")


# Ends


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_batch_of_ends_that_fails_as_a_whole_is_made_one_by_one(aws: Aws, clock: ManualClock, when: str) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    with fault_injection.injected() as broken:
        getattr(broken, when)(BATCH, cut_off(), **ENDS)
        outcomes, _ = requests(lambda: world.executor.run(batch))
    assert outcomes == dict.fromkeys("abc", "succeeded")  # also those whose end is found to be their own
    assert [world.statuses(job_id) for job_id in "abc"] == [["succeeded"]] * 3


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("done", [False, True])
def test_an_end_that_is_throttled_within_its_batch_is_written_alone(aws: Aws, clock: ManualClock, done: bool) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    with fault_injection.injected() as broken:
        broken.partly(BATCH, [0], code="ThrottlingError", done=done, **ENDS)
        outcomes, _ = requests(lambda: world.executor.run(batch))
    assert outcomes == dict.fromkeys("abc", "succeeded")
    assert [world.statuses(job_id) for job_id in "abc"] == [["succeeded"]] * 3
    clock.advance(100)
    assert [one.ended.outcome for one in world.executor.run(batch)] == ["duplicate"] * 3
    assert world.target.counts() == Counter("abc")


def taken_over(world: World, message: Message) -> None:
    world.executor.workshop.runs.start(message, "other", world.clock.now())


def ended_as_lost(world: World, message: Message) -> None:
    (run,) = world.runs(message.job_id)
    world.executor.workshop.runs.lose(run, world.clock.now())


def begun_anew(world: World, message: Message) -> None:
    """Its start was taken back, and the next has its number."""
    world.aws.dynamodb.delete_item(TableName=world.aws.table, Key=keys.run_key(message.job_id, message.scheduled_for))
    taken_over(world, message)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("meanwhile", [taken_over, ended_as_lost, begun_anew])
def test_i2_the_end_of_a_run_that_is_anothers_by_now_is_refused_and_the_others_are_written(
    aws: Aws, clock: ManualClock, meanwhile: Callable[[World, Message], None]
) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    (message,) = (message_of(one.body) for one in batch if '"a"' in one.body)
    left: list[Run] = []

    def script(call: Call) -> Result:
        if call.job_id == "a":
            clock.advance(66)  # its lease is over
            meanwhile(world, message)
            left.extend(world.runs("a"))
        return SUCCEED

    world.target.script = script
    outcomes, _ = requests(lambda: world.executor.run(batch))
    assert outcomes == {"a": "lease_lost", "b": "succeeded", "c": "succeeded"}
    assert world.runs("a") == left


@pytest.mark.usefixtures("unhurried")
def test_a_child_that_is_linked_while_its_parent_runs_in_a_batch_is_woken(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["a", "b"])

    def script(call: Call) -> Result:
        if call.job_id == "a":
            world.submit(job_id="child", depends_on=("a",))
        return SUCCEED

    world.target.script = script
    batch = world.receive()
    with faults.logging() as log:
        handled = world.executor.run(batch)
    assert [one.ended.outcome for one in handled] == ["succeeded", "succeeded"]
    woken = [entry["MessageBody"] for call in log.of("sqs:SendMessageBatch") for entry in call.asked["Entries"]]
    assert any('"child"' in body and "woken" in body for body in woken)


def test_i5_a_cancel_between_the_starts_and_the_reads_is_seen(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["a", "b", "c"])
    batch = world.receive()
    running: list[str] = []

    def cancels(call: faults.Call) -> bool:
        if call.name == READS and not running:
            running.extend(run.job_id for run in world.cancel("b").running)
        return False

    with faults.refusing(cancels):
        outcomes, _ = requests(lambda: world.executor.run(batch))
    assert running == ["b"]  # the answer says so
    assert outcomes == {"a": "succeeded", "b": "cancelled", "c": "succeeded"}
    assert world.target.counts() == Counter("ac")


def test_a_slow_run_holds_up_no_end_of_its_batch(aws: Aws, clock: ManualClock) -> None:
    world = world_of(aws, clock, ["slow", "a", "b"])
    seen: list[list[list[str]]] = []

    def script(call: Call) -> Result:
        if call.job_id == "slow":
            for _ in range(1000):
                threading.Event().wait(0.02)
                seen.append([world.statuses(job_id) for job_id in "ab"])
                if seen[-1] == [["succeeded"], ["succeeded"]]:
                    break
        return SUCCEED

    world.target.script = script
    outcomes, _ = requests(lambda: world.executor.run(world.receive()))
    assert seen[-1] == [["succeeded"], ["succeeded"]]
    assert set(outcomes.values()) == {"succeeded"}


def test_what_is_likely_to_be_there_is_not_inserted(aws: Aws, clock: ManualClock) -> None:
    """A run that was received before is started by an update alone: one write unit, not two."""
    world = world_of(aws, clock, ["a", "b"], base_s=1)
    world.target.script = lambda call: failure() if call.attempt == 1 else SUCCEED
    assert {one.ended.outcome for one in world.executor.run(world.receive())} == {"failed"}
    clock.advance(timedelta(seconds=5).total_seconds())
    batch: list[Received] = world.receive()
    assert [one.receive_count for one in batch] == [2, 2]
    with faults.logging() as log:
        world.executor.run(batch)
    statements = [one["Statement"] for call in log.of(BATCH) for one in call.asked["Statements"]]
    assert not any(statement.startswith("INSERT") for statement in statements)
    assert [world.statuses(job_id) for job_id in "ab"] == [["succeeded"]] * 2
