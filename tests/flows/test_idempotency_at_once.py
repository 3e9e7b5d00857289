"""Idempotency-Key while the first call is still going on: who comes second waits for its answer, or for its end."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.submit import bodies
from functions.submit.calls import Reply
from functions.submit.request import Request
from infra.api import SUBMIT_TIMEOUT_S
from shared.model.errors import ConflictError, IdempotencyInProgressError, IdempotencyMismatchError
from shared.store.idempotency import WAIT_S, IdempotencyRecords
from shared.store.idempotency_record import IN_PROGRESS_S
from shared.wiring.api import Api
from tests.flows.test_api_idempotency import JOB, Died, Fault, jobs, records, throttled, writes_job
from tests.support import calls
from tests.support.aws import Aws
from tests.support.clocks import START, ManualClock
from tests.support.http import http_api_event
from tests.support.world import World

pytestmark = pytest.mark.backends("moto", "memory")
LIMIT_S = 10  # of real time, for a thread that would wait for ever


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


def pausing(world: World, pause: Callable[[float], None]) -> Api:
    """The API, whose callers wait for each other by `pause`."""
    records = IdempotencyRecords(world.aws.dynamodb, world.aws.table, world.clock, pause)
    return replace(world.api, idempotency=records)


def submit(api: Api, body: Any = JOB, caller: str | None = None) -> Reply:
    """One call with the key `k`, as the function makes it; from any thread."""
    event = http_api_event("POST", "/v1/jobs", body, headers={"idempotency-key": "k"}, caller=caller)
    return bodies.submit_job(Request(APIGatewayProxyEventV2(event), {}), api, api.clock.now())


def is_replay(reply: Reply) -> bool:
    return "Idempotent-Replay" in reply.headers


class InThread(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Reply]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.reply: Reply | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.reply = self._call()
        except Exception as error:  # noqa: BLE001 - told to the test
            self.error = error

    def ended(self) -> "InThread":
        self.join(LIMIT_S)
        assert not self.is_alive()
        return self


class Hold(calls.Observer):
    """Holds the first write of a job until it is let go; then fails it with `error`, if there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.reached, self.let_go = threading.Event(), threading.Event()
        self._first = threading.Lock()

    def on_request(self, call: calls.Call) -> None:
        if writes_job(call) and self._first.acquire(blocking=False):
            self.reached.set()
            assert self.let_go.wait(LIMIT_S)
            if self.error:
                raise self.error


def both(world: World, hold: Hold, body: Any = JOB) -> tuple[InThread, InThread, list[float]]:
    """Two calls: the second comes while the first writes its job, and looks again when the first has ended."""
    pauses: list[float] = []
    with calls.observing(hold):
        first = InThread(lambda: submit(pausing(world, pauses.append), body))
        assert hold.reached.wait(LIMIT_S)

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            hold.let_go.set()
            first.ended()

        second = InThread(lambda: submit(pausing(world, pause), body)).ended()
    return first, second, pauses


def test_the_second_gets_the_answer_of_the_first(world: World, aws: Aws) -> None:
    first, second, pauses = both(world, Hold())
    assert first.reply
    assert second.reply
    assert (is_replay(first.reply), is_replay(second.reply)) == (False, True)
    assert second.reply.document == first.reply.document
    assert len(jobs(aws)) == 1
    assert len(pauses) == 1


def test_where_the_first_fails_the_second_takes_over_at_once(world: World, aws: Aws) -> None:
    first, second, pauses = both(world, Hold(throttled("PutItem")))
    assert first.error
    assert second.reply
    assert not is_replay(second.reply)
    assert len(jobs(aws)) == 1
    assert len(pauses) == 1


def test_where_the_first_is_refused_the_second_is_judged_itself(world: World, aws: Aws) -> None:
    world.submit(job_id="taken", every="1h")
    world.clock.advance(1)
    first, second, _ = both(world, Hold(), {**JOB, "job_id": "taken"})
    assert isinstance(first.error, ConflictError)
    assert isinstance(second.error, ConflictError)
    assert str(first.error) == str(second.error)
    assert records(aws) == []


def test_another_body_and_another_caller_do_not_wait(world: World, aws: Aws) -> None:
    hold, pauses = Hold(), list[float]()
    with calls.observing(hold):
        first = InThread(lambda: submit(world.api))
        assert hold.reached.wait(LIMIT_S)
        with pytest.raises(IdempotencyMismatchError):
            submit(pausing(world, pauses.append), {**JOB, "name": "other"})
        other = submit(pausing(world, pauses.append), caller="arn:aws:iam::123456789012:user/b")
        assert not is_replay(other)
        hold.let_go.set()
        first.ended()
    assert pauses == []
    assert len(jobs(aws)) == 2


class Crowd(calls.Observer):
    """Holds the first write of a job until all the others wait."""

    def __init__(self, size: int) -> None:
        self.waiting = threading.Semaphore(0)
        self.done = threading.Event()
        self._others = size - 1
        self._first = threading.Lock()

    def on_request(self, call: calls.Call) -> None:
        if writes_job(call) and self._first.acquire(blocking=False):
            for _ in range(self._others):
                assert self.waiting.acquire(timeout=LIMIT_S)

    def pause(self, seconds: float) -> None:
        del seconds
        self.waiting.release()
        assert self.done.wait(LIMIT_S)


@pytest.mark.parametrize("died", [False, True], ids=["a new key", "a call that died"])
def test_of_many_at_once_one_works_and_all_have_its_answer(world: World, aws: Aws, died: bool) -> None:
    if died:
        with calls.observing(Fault(writes_job, Died(), after=False)), pytest.raises(Died):
            submit(world.api)
        world.clock.advance(IN_PROGRESS_S)
    crowd = Crowd(8)

    def call() -> Reply:
        reply = submit(pausing(world, crowd.pause))
        crowd.done.set()
        return reply

    with calls.observing(crowd):
        replies = [thread.ended().reply for thread in [InThread(call) for _ in range(8)]]
    assert [is_replay(reply) for reply in replies if reply].count(False) == 1
    documents = [reply.document for reply in replies if reply]
    assert len(documents) == 8
    assert all(document == documents[0] for document in documents)
    assert len(jobs(aws)) == 1


@pytest.mark.parametrize("written", [False, True], ids=["before the job is written", "after it"])
def test_who_comes_late_enough_waits_for_the_end_of_a_dead_call(world: World, aws: Aws, written: bool) -> None:
    with calls.observing(Fault(writes_job, Died(), after=written)), pytest.raises(Died):
        submit(world.api)
    world.clock.advance(IN_PROGRESS_S - WAIT_S + 1)
    came = world.clock.now()
    waiting = pausing(world, world.clock.advance)  # type: ignore[arg-type]
    reply = submit(waiting)
    waited_s = (world.clock.now() - came).total_seconds()
    assert IN_PROGRESS_S - WAIT_S < waited_s <= WAIT_S
    assert not is_replay(reply)
    assert len(jobs(aws)) == 1
    document: Any = reply.document
    # Its hour counts from when it was made.
    made_at = "2026-11-30T11:58:00Z" if written else document["created_at"]
    assert document["created_at"] == made_at
    assert (document["created_at"] > "2026-11-30T11:58:29") is not written
    replay = submit(waiting)
    assert (is_replay(replay), replay.document) == (True, document)


def test_who_comes_too_early_is_told_when_it_will_be_over(world: World, aws: Aws) -> None:
    with calls.observing(Fault(writes_job, Died(), after=False)), pytest.raises(Died):
        submit(world.api)
    world.clock.advance(4)
    came = world.clock.now()
    with pytest.raises(IdempotencyInProgressError) as told:
        submit(pausing(world, world.clock.advance))  # type: ignore[arg-type]
    assert (world.clock.now() - came).total_seconds() <= WAIT_S
    world.clock.advance(told.value.retry_after_s)
    assert not is_replay(submit(world.api))
    assert len(jobs(aws)) == 1


def test_looks_that_take_long_count_as_waiting(world: World) -> None:
    with calls.observing(Fault(writes_job, Died(), after=False)), pytest.raises(Died):
        submit(world.api)

    class Slow(calls.Observer):
        def on_answer(self, call: calls.Call) -> None:
            if call.name == "dynamodb:GetItem":
                world.clock.advance(3)

    came = world.clock.now()
    with calls.observing(Slow()), pytest.raises(IdempotencyInProgressError):
        submit(pausing(world, lambda seconds: None))
    assert (world.clock.now() - came).total_seconds() <= WAIT_S + 3


def test_a_call_that_waited_and_then_died_itself_is_dead_as_soon(world: World, aws: Aws) -> None:
    """What it may take is counted from when it came: its function ends then, however late its turn was."""
    for came_s in (0, 11):
        world.clock.set(START + timedelta(seconds=came_s))
        dies = Fault(writes_job, Died(), after=False)
        with calls.observing(dies), pytest.raises(Died):
            submit(pausing(world, world.clock.advance))  # type: ignore[arg-type]
    assert world.clock.now() - START >= timedelta(seconds=IN_PROGRESS_S)
    world.clock.set(START + timedelta(seconds=11 + IN_PROGRESS_S))
    assert not is_replay(submit(world.api))
    assert world.pauses == []
    assert len(jobs(aws)) == 1


def test_all_of_it_fits_into_one_call() -> None:
    """Waiting leaves a third of the function's time for one's own work; a call that has lapsed is dead for sure."""
    assert WAIT_S <= SUBMIT_TIMEOUT_S * 2 / 3 + 1
    assert SUBMIT_TIMEOUT_S < IN_PROGRESS_S <= 30
    assert WAIT_S > IN_PROGRESS_S / 2


class Ticking(ManualClock):
    """Goes on by a millisecond whenever it is read, as clocks do."""

    def now(self) -> Any:
        self._now = self._now.fromtimestamp(self._now.timestamp() + 0.001, self._now.tzinfo)
        return self._now


def test_the_job_of_a_dead_call_is_known_again_though_time_goes_on_within_a_call(aws: Aws) -> None:
    clock = Ticking()
    world = World(aws, clock)
    body = {"target": JOB["target"], "run_at": "2026-12-30T11:58:00Z"}
    with calls.observing(Fault(writes_job, Died(), after=True)), pytest.raises(Died):
        submit(world.api, body)
    clock.advance(IN_PROGRESS_S + 1)
    reply: Any = submit(world.api, body).document
    assert [reply["job_id"]] == jobs(aws)
