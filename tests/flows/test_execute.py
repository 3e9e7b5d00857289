"""The executor: one effect a run, exact attempts, leases, and a batch whose messages do not hold each other up."""

import json
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.flows.execute import Received
from shared.model.call import Call
from shared.model.run import Outcome, Result, Run
from shared.targets.target import Signals
from tests.support import calls, faults
from tests.support.aws import Aws, dead_letters, messages_waiting
from tests.support.clocks import START, ManualClock
from tests.support.world import SUCCEED, World, failure

pytestmark = pytest.mark.backends("moto", "emulator")

DUE = "2026-11-30T11:59:00Z"
START_RUN = faults.writes("run#")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-30T{text}+00:00")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    """With job `a`, due at 11:59:00 and in the queue."""
    made = World(aws, clock)
    made.submit(job_id="a", run_at=DUE, base_s=0.001)
    clock.set(at("11:59"))
    return made


def hides(log: faults.Log) -> list[int]:
    """The visibilities that were asked for, in order."""
    return [
        entry["VisibilityTimeout"]
        for call in log.of("sqs:ChangeMessageVisibilityBatch")
        for entry in call.asked["Entries"]
    ]


def redeliver(world: World) -> None:
    """Let every message in flight become visible: its visibility runs out."""
    world.clock.advance(1000)
    world.deliver()


# I3


def test_i3_nothing_starts_before_its_second(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:30.250Z")
    clock.advance(30)
    assert world.deliver() == []
    clock.advance(1)  # a delay has whole seconds: never early, at most one late
    world.deliver()
    (call, called_at) = world.target.calls[0]
    assert called_at >= call.scheduled_for


def test_i3_a_message_that_comes_early_is_put_back_before_the_others_run(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z")
    world.submit(job_id="b", run_at="2026-11-30T11:58:00Z")
    batch = world.receive()
    early = [one for one in batch if '"b"' in one.body]
    body = json.loads(early[0].body) | {"scheduled_for": "2026-11-30T11:58:04.5Z"}
    batch = [Received(one.message_id, one.receipt, json.dumps(body) if one in early else one.body) for one in batch]
    seen_when_called: list[list[int]] = []

    with faults.logging() as log:
        world.target.script = lambda call: seen_when_called.append(hides(log)) or SUCCEED  # type: ignore[func-returns-value]
        handled = {one.message.job_id: one.ended for one in world.executor.run(batch) if one.message}
    assert seen_when_called == [[5, 65]]
    assert (handled["b"].done, handled["b"].outcome) == (False, "early")
    assert world.target.counts() == {"a": 1}


# I2, I4: duplicates


def test_i2_a_message_that_comes_twice_has_one_effect(world: World) -> None:
    (first,) = world.receive()
    world.executor.run([first])
    (again,) = world.executor.run([first])
    assert (again.ended.done, again.ended.outcome) == (True, "duplicate")
    assert world.target.counts() == {"a": 1}


def test_i2_two_messages_of_one_run_in_a_batch_have_one_effect(world: World) -> None:
    (message,) = world.receive()
    outcomes = sorted(str(one.ended.outcome) for one in world.executor.run([message] * 5))
    assert outcomes.count("succeeded") == 1
    assert set(outcomes) <= {"succeeded", "duplicate", "put_back"}
    assert world.target.counts() == {"a": 1}


def test_c50_a_second_delivery_during_the_run_is_put_back_and_uses_no_attempt(world: World) -> None:
    (message,) = world.receive()
    second = world.new_executor()
    inside: list[Any] = []

    def script(call: Call) -> Result:
        if not inside:
            inside.extend(second.run([message]))
        return SUCCEED

    world.target.script = script
    world.executor.run([message])
    assert (inside[0].ended.done, inside[0].ended.outcome, inside[0].ended.back_s) == (False, "put_back", 66)
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.target.counts()["a"]) == ("succeeded", 1, 1)


def test_c50_a_dead_executors_run_is_taken_up_after_its_lease(world: World) -> None:
    (message,) = world.receive()
    with faults.crash(before=START_RUN, nth=2):  # the target was called; its end was not written
        world.executor.run([message])
    world.clock.advance(65)
    (early,) = world.executor.run([message])  # at the very end the lease still holds
    assert (early.ended.outcome, early.ended.back_s) == ("put_back", 1)
    world.clock.advance(1)
    meanwhile: list[Run] = []

    def script(call: Call) -> Result:
        meanwhile.extend(world.runs("a"))
        return SUCCEED

    world.target.script = script
    world.executor.run([message])
    # The first one is shown as over as soon as the second goes on, not only at its end.
    assert [(attempt.attempt, attempt.outcome) for attempt in meanwhile[0].attempts] == [(1, "lost"), (2, None)]
    (run,) = world.runs("a")
    assert [(attempt.attempt, attempt.outcome) for attempt in run.attempts] == [(1, "lost"), (2, "succeeded")]
    assert run.attempts[0].finished_at == run.attempts[0].lease_expires_at


def test_i2_an_attempt_whose_lease_was_taken_over_writes_nothing(world: World) -> None:
    (message,) = world.receive()

    def script(call: Call) -> Result:
        if call.attempt == 1:
            world.clock.advance(66)  # it hangs; its lease runs out
            world.new_executor().run([message])
            return failure("the sleeper woke")
        return SUCCEED

    world.target.script = script
    (handled,) = world.executor.run([message])
    assert (handled.ended.done, handled.ended.outcome) == (False, "lease_lost")
    (run,) = world.runs("a")
    assert (run.status, run.attempt, run.attempts[0].outcome) == ("succeeded", 2, "lost")


@pytest.mark.parametrize("outcome", [SUCCEED, failure("the sleeper woke")], ids=["succeeds", "fails"])
def test_i2_an_attempt_that_wakes_while_the_next_one_runs_writes_nothing(world: World, outcome: Result) -> None:
    (message,) = world.receive()
    hangs, wakes = threading.Event(), threading.Event()
    ended: list[Any] = []

    def script(call: Call) -> Result:
        if call.attempt == 1:
            hangs.set()
            assert wakes.wait(10)
            return outcome
        wakes.set()
        sleeper.join(10)
        return SUCCEED

    world.target.script = script
    sleeper = threading.Thread(target=lambda: ended.extend(world.executor.run([message])))
    sleeper.start()
    assert hangs.wait(10)
    world.clock.advance(66)
    world.new_executor().run([message])
    assert (ended[0].ended.done, ended[0].ended.outcome) == (False, "lease_lost")
    (run,) = world.runs("a")
    assert (run.status, [attempt.outcome for attempt in run.attempts]) == ("succeeded", ["lost", "succeeded"])


def test_i4_a_run_that_is_over_stays_as_it_is(world: World) -> None:
    (message,) = world.receive()
    world.executor.run([message])
    before = world.items("run#")
    world.clock.advance(10_000)
    world.executor.run([message])
    world.executor.run([message])
    assert world.items("run#") == before


# C40, I7: attempts


@pytest.mark.parametrize("n", [1, 2, 3])
def test_c40_i7_n_attempts_are_n_calls_and_one_dead_letter(aws: Aws, clock: ManualClock, n: int) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure(f"no luck {call.attempt}")
    world.submit(job_id="a", run_at=DUE, max_attempts=n, base_s=10, payload='{"amount":30.40}')
    for _ in range(2 * n + 2):
        clock.advance(61)
        world.deliver()
    (run,) = world.runs("a")
    assert (run.status, world.target.counts()["a"]) == ("dead_lettered", n)
    assert [(attempt.attempt, attempt.error) for attempt in run.attempts] == [
        (k, f"no luck {k}") for k in range(1, n + 1)
    ]
    (letter,) = dead_letters(aws)
    assert letter["job"] == {
        "job_id": "a",
        "name": None,
        "group": None,
        "tags": {},
        "target": {"kind": "python", "handler": "demo.echo"},
        "max_attempts": n,
    }
    assert letter["run"] == {"job_id": "a", "scheduled_for": DUE, "status": "dead_lettered"}
    assert [attempt["attempt"] for attempt in letter["attempts"]] == list(range(1, n + 1))
    assert letter["last_error"] == f"no luck {n}"
    assert (letter["payload"], letter["payload_omitted"]) == ({"amount": 30.40}, False)
    assert messages_waiting(aws) == {"visible": 0, "delayed": 0, "flight": 0}
    assert world.show("a").status == "dead_lettered"


def test_i7_a_last_attempt_that_crashes_is_dead_lettered_without_a_further_call(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at=DUE, max_attempts=1)
    clock.set(at("11:59"))
    with faults.crash(before=START_RUN, nth=2):
        world.deliver()
    redeliver(world)
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.target.counts()["a"]) == ("dead_lettered", 1, 1)
    assert [(attempt.attempt, attempt.outcome) for attempt in run.attempts] == [(1, "lost")]
    (letter,) = dead_letters(aws)
    assert letter["last_error"] == "the lease ran out before the attempt ended"


def test_i7_a_start_whose_answer_was_lost_uses_one_attempt(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at=DUE, max_attempts=1)
    clock.set(at("11:59"))
    with faults.answer_lost(aws, START_RUN):
        world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.target.counts()["a"]) == ("succeeded", 1, 1)


@pytest.mark.parametrize("before", [0, 1], ids=["first attempt", "second attempt"])
def test_i7_an_aws_error_before_the_call_uses_no_attempt(aws: Aws, clock: ManualClock, before: int) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at=DUE, max_attempts=before + 1, base_s=0.001)
    world.target.script = lambda call: SUCCEED if call.attempt > before else failure()
    clock.set(at("11:59"))
    for _ in range(before):
        world.deliver()
        clock.advance(2)
    with faults.refusing(lambda call: call.name == "dynamodb:GetItem" and call.params["Key"]["sk"]["S"] == "job"):
        (handled,) = world.executor.run(world.receive())
    assert handled.error is not None
    redeliver(world)
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.target.counts()["a"]) == ("succeeded", before + 1, before + 1)


def test_i7_a_refused_start_uses_no_attempt(world: World) -> None:
    with faults.refusing(START_RUN, times=3):
        for _ in range(3):
            world.executor.run(world.receive())
            world.clock.advance(66)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.attempt, len(run.attempts)) == ("succeeded", 1, 1)


def test_more_than_20_attempts_keep_the_last_20_with_their_numbers(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure(f"{call.attempt}")
    world.submit(job_id="a", run_at=DUE, max_attempts=23, base_s=0.001, max_s=1)
    clock.set(at("11:59"))
    for _ in range(23):
        world.deliver()
        clock.advance(2)
    (run,) = world.runs("a")
    assert (run.status, world.target.counts()["a"]) == ("dead_lettered", 23)
    assert [(attempt.attempt, attempt.error) for attempt in run.attempts] == [(k, str(k)) for k in range(4, 24)]


def test_an_error_of_512_bytes_is_kept_whole(world: World) -> None:
    error = "é" * 256
    world.target.script = lambda call: failure(error)
    world.deliver()
    (run,) = world.runs("a")
    assert run.attempts[0].error == error


def test_a_timed_out_attempt_is_tried_again(world: World) -> None:
    world.target.script = lambda call: (
        Result(outcome=Outcome.TIMED_OUT, error="60 s are over") if call.attempt == 1 else SUCCEED
    )
    world.deliver()
    world.clock.advance(2)
    world.deliver()
    (run,) = world.runs("a")
    assert [attempt.outcome for attempt in run.attempts] == ["timed_out", "succeeded"]


# C49: waits


@pytest.mark.parametrize("base_s", [3600, 100_000])
def test_c49_a_long_backoff_is_hidden_within_sqs_limits_and_ends_in_time(
    aws: Aws, clock: ManualClock, base_s: float
) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at=DUE, base_s=base_s, max_s=200_000)
    clock.set(at("11:59"))
    with faults.logging() as log:
        world.deliver()
        began = clock.now()
        while world.target.counts()["a"] < 2 and clock.now() < began + timedelta(days=3):
            clock.advance(300)
            world.deliver()
    waited_s = (clock.now() - began).total_seconds()
    assert base_s <= waited_s <= base_s + 901
    assert all(isinstance(hidden, int) and 0 <= hidden <= 43_200 for hidden in hides(log))


def test_c49_delays_are_whole_seconds_from_0_to_900(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock, horizon_s=840)
    with faults.logging() as log:
        world.submit(run_at="2026-11-30T11:00:00Z")  # past
        world.submit(run_at="2026-11-30T12:11:59.9Z")
        world.submit(run_at="2026-11-30T12:14:00Z")  # 16 minutes ahead: waits in the table
        clock.advance(300)
        world.tick()
    delays = [entry["DelaySeconds"] for call in log.of("sqs:SendMessageBatch") for entry in call.asked["Entries"]]
    assert delays == [0, 840, 660]
    assert {type(delay) for delay in delays} == {int}


# C51: partial batches


def ten(world: World) -> list[Received]:
    for place in range(10):
        world.submit(job_id=f"j{place}", run_at="2026-11-30T11:58:00Z")
    return sorted(world.receive(), key=lambda one: one.body)


def test_c51_exactly_those_that_fail_come_back(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure() if call.job_id in ("j3", "j7") else SUCCEED
    handled = world.executor.run(ten(world))
    back = {one.message.job_id for one in handled if one.message and not one.ended.done}
    assert back == {"j3", "j7"}
    assert set(world.target.counts().values()) == {1}


def test_c51_all_fail(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    assert [one.ended.done for one in world.executor.run(ten(world))] == [False] * 10


@pytest.mark.parametrize(
    "body",
    ["not JSON", "{}", "[]", "null", '{"job_id":5}', '"' * 3, '{"job_id":"a","scheduled_for":"noon"}', "[" * 100_000],
)
def test_c51_a_bad_body_fails_alone_and_is_kept(world: World, body: str) -> None:
    with calls.unseen():
        world.aws.sqs.send_message(QueueUrl=world.aws.queue_url, MessageBody=body)
    world.deliver()
    assert world.target.counts() == {"a": 1}
    (letter,) = dead_letters(world.aws)
    assert letter["unreadable"] == body[:20_000]
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 0, "flight": 0}


def test_c51_an_unforeseen_error_is_its_messages_alone(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)

    def script(call: Call) -> Result:
        if call.job_id == "j3":
            raise ZeroDivisionError
        return SUCCEED

    world.target.script = script
    handled = world.executor.run(ten(world))
    assert [one.message.job_id for one in handled if one.message and one.error] == ["j3"]
    assert sum(one.ended.done for one in handled) == 9
    world.target.script = lambda call: SUCCEED
    clock.advance(66)
    world.deliver()
    assert world.statuses("j3") == ["succeeded"]


def test_a_run_that_failed_is_put_back_before_a_slow_one_of_its_batch_ends(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    failed = threading.Event()

    class PutBack(calls.Observer):
        order = calls.LOG

        def on_answer(self, call: calls.Call) -> None:
            if call.name == "sqs:ChangeMessageVisibilityBatch" and len(call.asked["Entries"]) == 1:
                failed.set()

    def script(call: Call) -> Result:
        if call.job_id == "fails":
            return failure()
        assert failed.wait(10)
        return SUCCEED

    world.target.script = script
    world.submit(job_id="fails", run_at="2026-11-30T11:58:00Z")
    world.submit(job_id="slow", run_at="2026-11-30T11:58:00Z")
    with calls.observing(PutBack()):
        handled = world.executor.run(world.receive())
    assert {one.message.job_id: one.ended.done for one in handled if one.message} == {"fails": False, "slow": True}


def test_a_lease_that_cannot_be_put_on_a_message_stops_no_run(world: World) -> None:
    with faults.refusing("sqs:ChangeMessageVisibilityBatch", times=9):
        world.deliver()
    assert world.statuses("a") == ["succeeded"]


# Leases of long runs


class Waiting:
    """A target that runs until it is told to stop or to end."""

    def __init__(self) -> None:
        self.begun, self.end, self.stopped = threading.Event(), threading.Event(), threading.Event()

    def call(self, call: Call, signals: Signals) -> Result:
        self.begun.set()
        for _ in range(1000):
            if signals.stop.wait(0.01):
                self.stopped.set()
                return Result(outcome=Outcome.CANCELLED, error="stopped")
            if self.end.is_set():
                return SUCCEED
        raise AssertionError("neither stopped nor ended")


def long_run(world: World, target: Waiting, renew_every_s: float) -> threading.Thread:
    """Job `long` (timeout 100 s) begins to run in a thread of its own."""
    world.submit(job_id="long", run_at="2026-11-30T11:58:00Z", timeout_s=100)
    executor = world.new_executor(target, renew_every_s=renew_every_s)
    (message,) = world.receive()
    thread = threading.Thread(target=lambda: executor.run([message]))
    thread.start()
    assert target.begun.wait(10)
    return thread


def until(condition: Any) -> None:
    """Wait for a thread of the product to get there."""
    reached = threading.Event()
    for _ in range(1000):
        if condition():
            return
        reached.wait(0.01)
    raise AssertionError("not reached within 10 s")


def test_the_lease_of_a_long_run_is_renewed_on_run_and_message(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    target = Waiting()
    with faults.logging() as log:
        thread = long_run(world, target, renew_every_s=0.02)
        clock.advance(60)
        until(lambda: world.runs("long")[0].lease_expires_at == START + timedelta(seconds=125))
        target.end.set()
        thread.join(10)
    (run,) = world.runs("long")
    assert (run.status, run.attempts[0].lease_expires_at) == ("succeeded", START + timedelta(seconds=125))
    assert set(hides(log)) == {65}


def test_i2_an_attempt_that_finds_its_lease_taken_over_stops_and_writes_nothing(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    target = Waiting()
    thread = long_run(world, target, renew_every_s=0.02)
    with faults.refusing(START_RUN, times=10**6):  # no renewal gets through until the lease is over
        clock.advance(66)
        until(target.stopped.is_set)
    thread.join(10)
    (run,) = world.runs("long")
    assert (run.status, run.attempt, run.attempts[0].outcome) == ("running", 1, None)


def test_a_short_run_is_not_renewed(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", timeout_s=30)
    pause = threading.Event()
    world.target.script = lambda call: (pause.wait(0.1) and SUCCEED) or SUCCEED
    executor = world.new_executor(renew_every_s=0.01)
    with faults.logging() as log:
        executor.run(world.receive())
    assert len(log.of(START_RUN)) == 2


# C63


def test_c63_an_executor_killed_mid_run_reaches_a_final_state_within_attempts_times_lease(
    aws: Aws, clock: ManualClock
) -> None:
    world = World(aws, clock)
    world.submit(job_id="a", run_at=DUE, max_attempts=3)
    clock.set(at("11:59"))
    for _ in range(3):
        with faults.crash(before=START_RUN, nth=2):
            world.deliver()
        clock.advance(30)
        world.deliver()  # before the lease's end: put back
        clock.advance(37)
    world.deliver()
    (run,) = world.runs("a")
    assert (run.status, run.attempt, world.target.counts()["a"]) == ("dead_lettered", 3, 3)
    assert clock.now() - run.scheduled_for <= timedelta(seconds=3 * 67)


# The dead letter


def test_a_dead_letter_keeps_the_payloads_digits_and_any_character(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    payload = '{"a":30.40,"b":123456789012345678901234567890,"c":"\uffff é 漢 \U0001f600","d":1e2}'
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", payload=payload, max_attempts=1)
    with faults.logging() as log:
        world.deliver()
    body = log.of("sqs:SendMessage")[0].asked["MessageBody"]
    assert body.isascii()
    assert '"a":30.40,"b":123456789012345678901234567890' in body
    assert json.loads(body)["payload"] == json.loads(payload)


@pytest.mark.parametrize(("character", "omitted"), [("a", False), ("漢", True)])
def test_a_dead_letter_stays_under_sqs_limit(aws: Aws, clock: ManualClock, character: str, omitted: bool) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    payload = json.dumps(character * 40_000, ensure_ascii=False)  # 漢: 120 KB of UTF-8, 240 KB when escaped
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", payload=payload, max_attempts=1)
    world.deliver()
    assert world.statuses("a") == ["dead_lettered"]
    (letter,) = dead_letters(aws)
    assert (letter["payload_omitted"], letter["payload"] is None) == (omitted, omitted)


@pytest.mark.parametrize(
    "crash", [{"before": "sqs:SendMessage"}, {"after": "sqs:SendMessage"}], ids=["before", "after"]
)
def test_a_crash_around_the_dead_letter_loses_neither_letter_nor_mark(
    aws: Aws, clock: ManualClock, crash: dict[str, Any]
) -> None:
    world = World(aws, clock)
    world.target.script = lambda call: failure()
    world.submit(job_id="a", run_at=DUE, max_attempts=1)
    clock.set(at("11:59"))
    with faults.crash(**crash):
        world.deliver()
    redeliver(world)
    assert world.statuses("a") == ["dead_lettered"]
    assert world.target.counts()["a"] == 1
    assert len(dead_letters(aws)) == (1 if "before" in crash else 2)


def test_a_job_that_expired_before_its_start_is_not_called(world: World) -> None:
    with calls.unseen():
        world.aws.dynamodb.delete_item(TableName=world.aws.table, Key={"pk": {"S": "job#a"}, "sk": {"S": "job"}})
    world.deliver()
    assert world.target.calls == []
    assert world.items() == []  # no ghost
    assert messages_waiting(world.aws) == {"visible": 0, "delayed": 0, "flight": 0}


def test_c56_the_handler_gets_the_payload_to_the_letter(aws: Aws, clock: ManualClock) -> None:
    world = World(aws, clock)
    payload = '{"z":1.0,"a":30.40,"n":10000000000000000000000000000000000000000,"e":"","t":true}'
    world.submit(job_id="a", run_at="2026-11-30T11:58:00Z", payload=payload)
    world.submit(job_id="b", run_at="2026-11-30T11:58:00Z", payload=json.dumps("é" * 1000, ensure_ascii=False))
    world.deliver()
    given = {call.job_id: call.payload for call, _ in world.target.calls}
    assert given == {"a": payload, "b": '"' + "é" * 1000 + '"'}
