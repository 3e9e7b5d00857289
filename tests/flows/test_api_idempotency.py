"""Idempotency-Key: the same key and body have one effect and one answer, whatever dies in between."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.submit import strict_json
from shared.model.errors import IdempotencyInProgressError, InputError
from shared.store import keys
from shared.store.idempotency import WAIT_S, Answer, Turn
from tests.support import calls
from tests.support.aws import Aws, all_items
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import World

# A process that dies has no metrics to tell of.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")

JOB = {"target": ECHO, "every": "1h", "payload": {"n": 1}}
KEY = {"idempotency-key": "k-1"}


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


class Died(BaseException):
    """The process is gone: nothing catches it."""


class Fault(calls.Observer):
    """Raises `error` once, before or after the service has seen the call that `wanted` tells."""

    def __init__(self, wanted: Callable[[calls.Call], bool], error: BaseException, *, after: bool) -> None:
        self.wanted, self.error, self.after, self.fired = wanted, error, after, False

    def on_request(self, call: calls.Call) -> None:
        self._fire(call, now=not self.after)

    def on_answer(self, call: calls.Call) -> None:
        self._fire(call, now=self.after)

    def _fire(self, call: calls.Call, *, now: bool) -> None:
        if now and not self.fired and self.wanted(call):
            self.fired = True
            raise self.error


def writes_job(call: calls.Call) -> bool:
    return call.name == "dynamodb:PutItem" and call.params["Item"][keys.SK] == {"S": "job"}


def writes_answer(call: calls.Call) -> bool:
    return call.name == "dynamodb:UpdateItem" and call.params["Key"][keys.SK] == {"S": "idem"}


def throttled(operation: str) -> ClientError:
    return ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, operation)


def jobs(aws: Aws) -> list[str]:
    return [item[keys.PK]["S"].removeprefix("job#") for item in all_items(aws) if item[keys.SK]["S"] == "job"]


def records(aws: Aws) -> list[dict[str, Any]]:
    return [item for item in all_items(aws) if item[keys.SK]["S"] == "idem"]


def test_the_same_key_and_body_have_the_same_answer_and_one_job(http: Http, aws: Aws) -> None:
    target = '"target":{"kind":"python","handler":"demo.echo"}'
    first = http.post("/v1/jobs", f'{{{target},"every":"1h","payload":[30.40,{{"b":1,"a":2}}]}}', headers=KEY)
    assert first.status == 201
    assert "idempotent-replay" not in first.headers
    # White space and the order of fields make no other body.
    again = http.post("/v1/jobs", f'{{ "every":"1h", {target},\n"payload":[30.40,{{"b":1,"a":2}}]}}', headers=KEY)
    assert (again.status, again.headers["idempotent-replay"]) == (201, "true")
    assert again.text == first.text
    assert again.headers["location"] == first.headers["location"]
    assert jobs(aws) == [first.document["job_id"]]


def test_the_answer_is_the_first_one_even_when_the_job_went_on(http: Http, world: World) -> None:
    body = {"target": ECHO, "run_at": "2026-11-30T11:58:00Z"}
    first = http.post("/v1/jobs", body, headers=KEY)
    world.deliver()
    world.clock.advance(3600)
    assert http.get(first.headers["location"]).document["status"] == "succeeded"
    assert http.post("/v1/jobs", body, headers=KEY).text == first.text


def test_another_body_is_refused(http: Http, aws: Aws) -> None:
    first = http.post("/v1/jobs", JOB, headers=KEY)
    for other in ({**JOB, "payload": {"n": 2}}, {**JOB, "name": "x"}, {**JOB, "job_id": first.document["job_id"]}):
        answer = http.post("/v1/jobs", other, headers=KEY)
        assert (answer.status, answer.document["type"].rsplit(":")[-1]) == (422, "idempotency-mismatch")
    assert len(jobs(aws)) == 1


def test_keys_of_different_callers_never_meet(http: Http, aws: Aws) -> None:
    callers = ["arn:aws:iam::123456789012:user/a", "arn:aws:iam::123456789012:user/b", None]
    made = {http.post("/v1/jobs", JOB, headers=KEY, caller=caller).document["job_id"] for caller in callers}
    assert len(made) == len(jobs(aws)) == 3
    # Nor do a caller and a key that are the same when written one after the other.
    http.post("/v1/jobs", JOB, headers={"idempotency-key": "a"}, caller="xa")
    http.post("/v1/jobs", JOB, headers={"idempotency-key": "aa"}, caller="x")
    assert len(jobs(aws)) == 5


def test_a_call_that_gets_no_answer_in_time_is_told_when_to_ask_again(http: Http, world: World, aws: Aws) -> None:
    seen = []

    def first_call(turn: Any) -> str:
        del turn
        seen.append(http.post("/v1/jobs", JOB, headers=KEY))
        return "{}"

    body = strict_json.write(JOB, sort_keys=True)
    world.api.idempotency.once(
        caller="anonymous", key="k-1", body=body, job_id="j", token="t", now=world.clock.now(), call=first_call
    )
    assert (seen[0].status, seen[0].headers["retry-after"]) == (409, "30")
    assert seen[0].document["type"].endswith(":idempotency-in-progress")
    assert WAIT_S - 1 < sum(world.pauses) <= WAIT_S
    assert jobs(aws) == []


@pytest.mark.parametrize("after", [False, True], ids=["before the job is written", "after it"])
@pytest.mark.parametrize("job_id", [None, "mine"])
def test_a_call_that_died_half_way_is_taken_over(
    http: Http, world: World, aws: Aws, after: bool, job_id: str | None
) -> None:
    body = {**JOB, "job_id": job_id} if job_id else JOB
    with calls.observing(Fault(writes_job, Died(), after=after)), pytest.raises(Died):
        http.post("/v1/jobs", body, headers=KEY)
    assert http.post("/v1/jobs", body, headers=KEY).status == 409
    assert http.post("/v1/jobs", {**body, "name": "x"}, headers=KEY).status == 422
    there = jobs(aws)
    world.clock.advance(31)
    answer = http.post("/v1/jobs", body, headers=KEY)
    assert (answer.status, "idempotent-replay" in answer.headers) == (201, False)
    assert jobs(aws) == [answer.document["job_id"]] == (there or jobs(aws))
    assert http.post("/v1/jobs", body, headers=KEY).text == answer.text


def test_a_job_whose_call_died_may_have_run_already(http: Http, world: World, aws: Aws) -> None:
    body = {"target": ECHO, "run_at": "2026-11-30T11:58:00Z"}
    with calls.observing(Fault(writes_answer, Died(), after=False)), pytest.raises(Died):
        http.post("/v1/jobs", body, headers=KEY)
    world.deliver()
    world.clock.advance(31)
    answer = http.post("/v1/jobs", body, headers=KEY)
    assert answer.document["status"] == "succeeded"
    world.deliver()
    assert world.target.counts() == {jobs(aws)[0]: 1}


def test_a_job_of_before_is_not_taken_for_this_ones(http: Http, world: World) -> None:
    """The id was used, and over; a new key submits it again, and dies before it has written."""
    body = {"job_id": "mine", "target": ECHO, "every": "1h"}
    http.post("/v1/jobs", body)
    http.post("/v1/jobs/mine:cancel")
    world.clock.advance(1)
    with calls.observing(Fault(writes_job, Died(), after=False)), pytest.raises(Died):
        http.post("/v1/jobs", body, headers=KEY)
    world.clock.advance(31)
    assert http.post("/v1/jobs", body, headers=KEY).document["status"] == "scheduled"


def test_a_job_of_somebody_else_is_not_taken_for_this_ones(http: Http, world: World) -> None:
    """The call died before it wrote; meanwhile another caller took the id for another job."""
    body = {**JOB, "job_id": "mine"}
    with calls.observing(Fault(writes_job, Died(), after=False)), pytest.raises(Died):
        http.post("/v1/jobs", body, headers=KEY)
    http.post("/v1/jobs", {**body, "every": "2h"})
    world.clock.advance(31)
    assert http.post("/v1/jobs", body, headers=KEY).status == 409


def calls_of(world: World, key: str = "k") -> Callable[..., Answer]:
    """Calls with one key and body, each with a token of its own."""

    def once(call: Callable[[Turn], str]) -> Answer:
        return world.api.idempotency.once(
            caller="c",
            key=key,
            body="{}",
            job_id="j",
            token=world.api.new_job_id(),
            now=world.clock.now(),
            call=call,
        )

    return once


class SentTwice(calls.Observer):
    """A write that took effect, whose answer was lost, and that AWS's client then sends again, of itself."""

    def __init__(self, aws: Aws, operation: str) -> None:
        self.aws, self.operation, self.sent = aws, operation, 0

    def on_request(self, call: calls.Call) -> None:
        if call.name == f"dynamodb:{self.operation}":
            self.sent += 1
            write = {"PutItem": self.aws.dynamodb.put_item, "UpdateItem": self.aws.dynamodb.update_item}
            with calls.unseen():
                write[self.operation](**call.params)


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem"])
def test_a_write_that_was_sent_twice_is_known_again(world: World, aws: Aws, operation: str) -> None:
    once = calls_of(world)
    with calls.observing(SentTwice(aws, operation)):
        assert once(lambda turn: "first") == Answer("first", replayed=False)
    assert once(lambda turn: "no") == Answer("first", replayed=True)

    def dies(turn: Turn) -> str:
        raise Died

    once = calls_of(world, key="other")
    with pytest.raises(Died):
        once(dies)
    world.clock.advance(31)
    twice = SentTwice(aws, operation)
    with calls.observing(twice):
        assert once(lambda turn: f"taken over: {turn.taken_over}") == Answer("taken over: True", replayed=False)
    assert twice.sent == {"PutItem": 1, "UpdateItem": 2}[operation]


@pytest.mark.parametrize("between", ["another retry works", "another retry is at work", "the first call ends"])
def test_of_those_who_would_take_a_call_over_one_does(world: World, aws: Aws, between: str) -> None:
    once = calls_of(world)
    worked: list[str] = []

    def dies(turn: Turn) -> str:
        raise Died

    class Between(calls.Observer):
        """Comes between a retry's reading of the record and its taking over."""

        def on_request(self, call: calls.Call) -> None:
            if call.name != "dynamodb:UpdateItem" or worked:
                return
            worked.append(between)
            if between == "another retry works":
                once(lambda turn: turn.job_id)
            elif between == "another retry is at work":
                with pytest.raises(Died):
                    once(dies)
            else:
                with calls.unseen():  # it was only slow
                    aws.dynamodb.update_item(
                        TableName=aws.table,
                        Key=call.params["Key"],
                        UpdateExpression="SET #status = :done, #answer = :answer",
                        ExpressionAttributeNames={"#status": "status", "#answer": "answer"},
                        ExpressionAttributeValues={":done": {"S": "COMPLETED"}, ":answer": {"S": '"first"'}},
                    )

    with pytest.raises(Died):
        once(dies)
    world.clock.advance(31)
    with calls.observing(Between()):
        if between == "another retry is at work":
            with pytest.raises(IdempotencyInProgressError) as late:
                once(lambda turn: worked.append("too many") or "")
            assert late.value.retry_after_s == 30
        else:
            answer = once(lambda turn: worked.append("too many") or "")
            assert answer == Answer("first" if between == "the first call ends" else "j", replayed=True)
    assert worked == [between]


def test_a_slow_call_that_was_taken_over_writes_nothing_more(world: World) -> None:
    once = calls_of(world)

    def slow(turn: Turn) -> str:
        world.clock.advance(31)
        assert once(lambda second: f"second, {second.taken_over}").text == "second, True"
        return "slow"

    assert once(slow) == Answer("slow", replayed=False)
    assert once(slow) == Answer("second, True", replayed=True)

    def slow_and_refused(turn: Turn) -> str:
        slow(turn)
        raise InputError("name", "is wrong")

    once = calls_of(world, key="other")
    with pytest.raises(InputError):
        once(slow_and_refused)
    assert once(slow) == Answer("second, True", replayed=True)


@pytest.mark.parametrize("after", [False, True], ids=["not written", "written all the same"])
def test_trouble_with_the_store_is_503_and_a_retry_makes_no_second_job(http: Http, aws: Aws, after: bool) -> None:
    with calls.observing(Fault(writes_job, throttled("PutItem"), after=after)):
        failed = http.post("/v1/jobs", JOB, headers=KEY)
    assert (failed.status, failed.headers["retry-after"]) == (503, "1")
    assert "slow down" not in failed.text
    assert http.post("/v1/jobs", JOB, headers=KEY).status == 201
    assert len(jobs(aws)) == 1


def test_trouble_with_the_record_itself_is_503(http: Http, world: World, aws: Aws) -> None:
    def takes_key(call: calls.Call) -> bool:
        return call.name == "dynamodb:PutItem" and call.params["Item"][keys.SK] == {"S": "idem"}

    with calls.observing(Fault(takes_key, throttled("PutItem"), after=False)):
        assert http.post("/v1/jobs", JOB, headers=KEY).status == 503
    assert all_items(aws) == []
    with calls.observing(Fault(writes_answer, throttled("UpdateItem"), after=False)):
        assert http.post("/v1/jobs", JOB, headers=KEY).status == 503
    world.clock.advance(31)
    assert http.post("/v1/jobs", JOB, headers=KEY).status == 201
    assert len(jobs(aws)) == 1


@pytest.mark.parametrize(
    ("bad", "status"),
    [({"target": ECHO}, 400), ({**JOB, "cron": "* * * * *"}, 400), ({**JOB, "job_id": "taken"}, 409)],
)
def test_a_refused_call_leaves_the_key_free(
    http: Http, world: World, aws: Aws, bad: dict[str, Any], status: int
) -> None:
    http.post("/v1/jobs", {**JOB, "job_id": "taken"})
    world.clock.advance(1)
    assert http.post("/v1/jobs", bad, headers=KEY).status == status
    assert records(aws) == []
    assert http.post("/v1/jobs", JOB, headers=KEY).status == 201


def test_after_a_day_the_key_is_new(http: Http, world: World, aws: Aws) -> None:
    first = http.post("/v1/jobs", JOB, headers=KEY)
    world.clock.advance(86_399)
    assert http.post("/v1/jobs", JOB, headers=KEY).text == first.text
    world.clock.advance(1)
    # TTL may be late by days: the record is still there, and no longer counts.
    assert http.post("/v1/jobs", {**JOB, "name": "other"}, headers=KEY).status == 201
    assert len(jobs(aws)) == 2


def test_the_record_holds_neither_key_nor_payload(http: Http, aws: Aws) -> None:
    http.post("/v1/jobs", {**JOB, "payload": "SECRET" * 1000}, headers={"idempotency-key": "MY-KEY"}, caller="ME")
    (record,) = records(aws)
    text = str(record)
    assert len(text) < 1600
    assert not any(word in text for word in ("SECRET", "MY-KEY", "ME'"))
    assert record["ttl"] == {"N": str(1_796_039_880 + 86_400)}


@pytest.mark.parametrize("key", ["", "x" * 256, "é", "a\tb", "a\u0000"])
def test_a_key_is_printable_ascii(http: Http, aws: Aws, key: str) -> None:
    answer = http.post("/v1/jobs", JOB, headers={"idempotency-key": key})
    assert (answer.status, answer.fields) == (400, ["Idempotency-Key"])
    assert all_items(aws) == []


def test_the_longest_key(http: Http) -> None:
    assert http.post("/v1/jobs", JOB, headers={"idempotency-key": "~ " * 127 + "!"}).status == 201
