"""POST /v1/jobs:batch: each job judged alone and answered in its place, DAGs in any order, written 25 to a request."""

import json
from typing import Any

import pytest

from shared.store import keys
from shared.store.journal import page_of
from tests.support import calls, faults
from tests.support.aws import Aws, all_items
from tests.support.calls import Call, Observer
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import World

pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")
ON_BOTH = pytest.mark.backends("moto", "emulator")

SOON = {"target": ECHO, "run_at": "2026-11-30T11:58:05Z"}
LATER = {"target": ECHO, "run_at": "2026-11-30T14:00:00Z"}
KEY = {"idempotency-key": "k-1"}


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


def batch(http: Http, *jobs: Any, **more: Any) -> list[Any]:
    answer = http.post("/v1/jobs:batch", {"jobs": list(jobs)}, **more)
    assert answer.status == 200, answer.text
    results: list[Any] = answer.document["results"]
    assert [result["index"] for result in results] == list(range(len(jobs)))
    return results


def statuses(results: list[Any]) -> list[int]:
    return [result["status"] for result in results]


def fault(result: Any) -> str:
    """What is said first about a refused job."""
    first = (result["problem"].get("errors") or [{"field": "", "message": result["problem"]["detail"]}])[0]
    return f"{first['field']}: {first['message']}".removeprefix(": ")


def jobs(aws: Aws) -> list[str]:
    return [keys.job_id_of(item[keys.PK]["S"]) for item in all_items(aws) if item[keys.SK]["S"] == keys.JOB]


@ON_BOTH
def test_jobs_are_taken_together_and_run(http: Http, world: World) -> None:
    sent = [{**SOON, "job_id": f"j{place}", "payload": {"n": place}} for place in range(30)]
    sent += [{"target": ECHO, "every": "60s", "job_id": "often"}, LATER]
    results = batch(http, *sent)
    assert statuses(results) == [201] * 32
    assert [result["job"]["job_id"] for result in results[:31]] == [*(f"j{place}" for place in range(30)), "often"]
    for result in results:
        assert result["job"] == http.get(f"/v1/jobs/{result['job']['job_id']}").document
    assert world.items(keys.CLAIM_PREFIX) == []
    world.clock.advance(5)
    world.deliver()
    assert sorted(world.target.counts()) == sorted(f"j{place}" for place in range(30))
    assert set(world.target.counts().values()) == {1}
    world.pass_time(120)
    assert len(world.target.slots("often")) == 2
    assert world.audit().findings == 0


def test_each_is_judged_alone_and_named_by_its_place(http: Http, aws: Aws) -> None:
    results = batch(
        http,
        LATER,
        {**LATER, "retry": {"max_attempts": 0}},
        7,
        {"target": ECHO, "cron": "61 * * * *"},
        {**LATER, "payload": "x" * 262_144},
        {**LATER, "nonsense": 1, "timeout_s": 0, "tags": {"a": 1}},
        {**LATER, "depends_on": ["nobody"]},
        {**LATER, "job_id": "free"},
    )
    assert statuses(results) == [201, 400, 400, 400, 413, 400, 400, 201]
    assert [fault(result).partition(":")[0] for result in results[1:7]] == [
        "jobs[1].retry.max_attempts",
        "jobs[2]",
        "jobs[3].cron",
        "jobs[4].payload",
        "jobs[5].nonsense",
        "jobs[6].depends_on[0]",
    ]
    assert fault(results[1]) == "jobs[1].retry.max_attempts: must be at least 1, not 0"
    assert [error["field"] for error in results[5]["problem"]["errors"]] == [
        "jobs[5].nonsense",
        "jobs[5].timeout_s",
        "jobs[5].tags.a",
    ]
    assert len(jobs(aws)) == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "jobs"),
        ({"jobs": None}, "jobs"),
        ({"jobs": {}}, "jobs"),
        ({"jobs": []}, "jobs"),
        ({"jobs": [LATER] * 101}, "jobs"),
        ({"jobs": [LATER], "more": 1}, "more"),
        ("[]", "body"),
        ('{"jobs": [{"target": {"kind": "python", "handler": "demo.echo"}, "payload": NaN}]}', "jobs[0].payload"),
        ('{"jobs": [{"every": "1h", "every": "2h"}]}', "jobs[0].every"),
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(http: Http, aws: Aws, body: Any, field: str) -> None:
    answer = http.post("/v1/jobs:batch", body)
    assert (answer.status, answer.fields[:1]) == (400, [field])
    assert all_items(aws) == []


def test_limits_in_bytes(http: Http, aws: Aws) -> None:
    whole = [{**LATER, "payload": "x" * 250_000}] * 16
    assert statuses(batch(http, *whole)) == [201] * 16
    answer = http.post("/v1/jobs:batch", {"jobs": [*whole, {**LATER, "payload": "x" * 200_000}]})
    assert (answer.status, answer.fields) == (413, ["body"])
    quotes = [{**LATER, "payload": '"' * 120_000}] * 16  # within 4 MiB, and twice that as a part of the answer
    answer = http.post("/v1/jobs:batch", {"jobs": quotes})
    assert (answer.status, answer.fields) == (413, ["body"])
    assert len(jobs(aws)) == 16


def test_a_whole_dag_in_any_order(http: Http, world: World) -> None:
    results = batch(
        http,
        {"target": ECHO, "job_id": "end", "depends_on": ["left", "right"]},
        {"target": ECHO, "job_id": "left", "depends_on": ["start"]},
        {"target": ECHO, "job_id": "right", "depends_on": ["start"]},
        {**SOON, "job_id": "start"},
    )
    assert statuses(results) == [201] * 4
    world.deliver()
    assert world.target.calls == []
    world.clock.advance(5)
    world.deliver()
    order = [call.job_id for call, _ in world.target.calls]
    assert order[0] == "start"
    assert sorted(order[1:3]) == ["left", "right"]
    assert order[3:] == ["end"]
    assert {moment for _, moment in world.target.calls} == {world.clock.now()}  # each woken by the one before


def test_who_depends_on_what_is_refused_is_refused_with_it(http: Http, world: World, aws: Aws) -> None:
    world.submit(job_id="taken", every="60s")
    results = batch(
        http,
        {"target": ECHO, "job_id": "c", "depends_on": ["b"]},
        {"target": ECHO, "job_id": "b", "depends_on": ["ok", "a"]},
        {**SOON, "job_id": "a", "timeout_s": 0},
        {**SOON, "job_id": "ok"},
        {"target": ECHO, "job_id": "d", "depends_on": ["taken"]},
        {**SOON, "job_id": "taken"},
    )
    assert statuses(results) == [400, 400, 400, 201, 400, 409]
    assert fault(results[0]) == "jobs[0].depends_on[0]: 'b', jobs[1], is refused"
    assert fault(results[1]) == "jobs[1].depends_on[1]: 'a', jobs[2], is refused"
    assert fault(results[4]) == "jobs[4].depends_on[0]: 'taken', jobs[5], is refused"
    assert sorted(jobs(aws)) == ["ok", "taken"]
    world.pass_time(30, step_s=5)
    assert world.target.counts() == {"ok": 1}
    assert world.audit().findings == 0


def test_circles_and_what_hangs_on_them(http: Http, aws: Aws) -> None:
    results = batch(
        http,
        {"target": ECHO, "job_id": "a", "depends_on": ["ok", "c"]},
        {"target": ECHO, "job_id": "b", "depends_on": ["a"]},
        {"target": ECHO, "job_id": "c", "depends_on": ["b"]},
        {"target": ECHO, "job_id": "below", "depends_on": ["c"]},
        {**LATER, "job_id": "ok"},
        {"target": ECHO, "job_id": "self", "depends_on": ["self"]},
        {"target": ECHO, "every": "60s", "job_id": "often"},
        {"target": ECHO, "job_id": "x", "depends_on": ["often"]},
    )
    assert statuses(results) == [400, 400, 400, 400, 201, 400, 201, 400]
    assert fault(results[0]) == "jobs[0].depends_on[1]: 'c' waits for 'a' in its turn"
    assert fault(results[3]) == "jobs[3].depends_on[0]: 'c', jobs[2], is refused"
    assert fault(results[5]) == "jobs[5].depends_on[0]: 'self' is the job itself"
    assert fault(results[7]).startswith("jobs[7].depends_on[0]: job 'often' is recurring")
    assert sorted(jobs(aws)) == ["often", "ok"]


def test_a_circle_through_a_job_that_is_there(http: Http, world: World) -> None:
    """`old` is over and submitted anew, on top of a job of the table that waits for it."""
    world.submit(job_id="old", run_at="2026-11-30T11:58:00Z")
    world.deliver()
    world.submit(job_id="there", run_at="2026-11-30T14:00:00Z", depends_on=("old",))
    results = batch(
        http,
        {"target": ECHO, "job_id": "new", "depends_on": ["there"]},
        {"target": ECHO, "job_id": "old", "depends_on": ["new"]},
    )
    assert statuses(results) == [400, 400]
    assert fault(results[1]) == "jobs[1].depends_on[0]: 'new' waits for 'old' in its turn"


def test_the_same_id_twice_is_refused_the_second_time(http: Http, aws: Aws) -> None:
    results = batch(
        http, {**LATER, "job_id": "a"}, {**SOON, "job_id": "a"}, {**LATER, "job_id": "b", "depends_on": ["a"]}
    )
    assert statuses(results) == [201, 409, 201]
    assert fault(results[1]) == "job 'a' is in this call already, as jobs[0]"


@ON_BOTH
def test_an_id_that_is_taken_and_one_that_is_over(http: Http, world: World) -> None:
    world.submit(job_id="over", run_at="2026-11-30T11:58:00Z")
    world.submit(job_id="taken", run_at="2026-11-30T14:00:00Z")
    world.deliver()
    results = batch(http, {**SOON, "job_id": "over"}, {**SOON, "job_id": "taken"}, {**SOON, "job_id": "free"})
    assert statuses(results) == [201, 409, 201]
    assert "exists and is scheduled" in fault(results[1])
    assert results[0]["job"]["version"] == 2
    world.clock.advance(5)
    world.deliver()
    assert world.target.counts() == {"over": 2, "free": 1}
    assert world.items(keys.CLAIM_PREFIX) == []


def test_long_payloads_stand_apart(http: Http, world: World) -> None:
    sent = [{**SOON, "job_id": f"j{place}", "payload": f"{place}" * 600} for place in range(3)]
    assert [result["job"]["payload"][:3] for result in batch(http, *sent)] == ["000", "111", "222"]
    assert len(world.items(keys.PAYLOAD_PREFIX)) == 3
    world.clock.advance(5)
    world.deliver()
    assert sorted(call.payload[1] for call, _ in world.target.calls) == ["0", "1", "2"]


class Counted(Observer):
    """The requests of a block, by operation."""

    order = calls.LOG

    def __init__(self) -> None:
        self.found: dict[str, int] = {}

    def on_answer(self, call: Call) -> None:
        self.found[call.operation] = self.found.get(call.operation, 0) + 1


def test_a_hundred_jobs_in_few_requests(http: Http, world: World) -> None:
    counted = Counted()
    with calls.observing(counted):
        assert statuses(batch(http, *[SOON] * 100)) == [201] * 100
    assert counted.found == {"PutItem": 1, "BatchExecuteStatement": 4, "SendMessageBatch": 10, "DeleteItem": 1}
    counted = Counted()
    with calls.observing(counted):
        batch(http, *[LATER] * 100)
    assert counted.found == {"BatchExecuteStatement": 4}


def test_one_page_a_shard(aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(aws, clock, shards=4)
    http = Http(monkeypatch, world.api)
    with faults.crash(before="sqs:SendMessageBatch"):
        batch(http, *[SOON] * 40)
    assert sorted(item[keys.PK]["S"] for item in world.items(keys.CLAIM_PREFIX)) == [f"shard#{n}" for n in range(4)]
    clock.advance(200)
    world.tick()
    world.deliver()
    assert len(world.target.calls) == 40
    assert world.items(keys.CLAIM_PREFIX) == []


@pytest.mark.backends("memory")  # some hundred runs
def test_what_a_dense_schedule_brings_is_split_and_left_to_the_ticks(
    http: Http, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.flows.enqueue.PAGE_MESSAGES", 100)
    with faults.crash(before="sqs:SendMessageBatch"):
        batch(http, *[{"target": ECHO, "every": "1s", "max_runs": 150}] * 3)
    pages = [page_of(item).messages for item in world.items(keys.CLAIM_PREFIX)]
    assert sorted(map(len, pages)) == [60, 100, 100, 100]  # 120 s of each
    world.clock.advance(95)
    (ticked,) = world.tick()
    assert (ticked.recovered, ticked.claimed.sent) == (360, 90)
    world.clock.advance(60)
    world.deliver()
    assert len(world.target.calls) == 450


@ON_BOTH
def test_a_statement_that_is_throttled_is_tried_again(http: Http, world: World) -> None:
    with throttling(times=2, places=(1, 2)) as refused:
        assert statuses(batch(http, *[SOON] * 4)) == [201] * 4
    assert refused.count == 4
    world.clock.advance(5)
    world.deliver()
    assert len(world.target.calls) == 4


def test_what_cannot_be_written_says_so_alone_and_nothing_of_it_stays(http: Http, world: World, aws: Aws) -> None:
    with throttling(times=4, places=(1,)):
        results = batch(
            http,
            {**SOON, "job_id": "a"},
            {**SOON, "job_id": "b"},
            {"target": ECHO, "job_id": "c", "depends_on": ["b"]},
            {"target": ECHO, "job_id": "d", "depends_on": ["a"]},
        )
    assert statuses(results) == [201, 503, 503, 201]
    assert results[1]["problem"]["type"].endswith("unavailable")
    assert sorted(jobs(aws)) == ["a", "d"]
    assert world.items(keys.CLAIM_PREFIX) == []  # throttled: surely not written
    world.pass_time(200)
    assert world.target.counts() == {"a": 1, "d": 1}


@pytest.mark.parametrize("made", [False, True])
def test_an_error_of_a_statement_that_may_have_been_made(http: Http, world: World, made: bool) -> None:
    """It is tried again; found there, it was made; else it is left to recovery, which sees what there is."""
    with throttling(times=1 if made else 4, places=(0,), code="InternalServerError", made=made):
        results = batch(http, {**SOON, "job_id": "a"}, {**SOON, "job_id": "b"})
    assert statuses(results) == [201 if made else 503, 201]
    assert len(world.items(keys.CLAIM_PREFIX)) == 1  # not sure: the page stays
    world.pass_time(240)
    assert world.target.counts() == ({"a": 1, "b": 1} if made else {"b": 1})
    assert world.items(keys.CLAIM_PREFIX) == []


def test_a_request_whose_answer_is_lost_is_known_again(http: Http, world: World) -> None:
    with faults.answer_lost(world.aws, "dynamodb:BatchExecuteStatement"):
        assert statuses(batch(http, *[SOON] * 3)) == [201] * 3
    world.clock.advance(5)
    world.deliver()
    assert len(world.target.calls) == 3


def test_a_request_that_fails_for_good_answers_its_jobs_only(http: Http, world: World) -> None:
    with faults.refusing("dynamodb:BatchExecuteStatement", times=4):
        results = batch(http, *[{**SOON, "job_id": f"j{place:02d}"} for place in range(30)])
    assert statuses(results) == [503] * 25 + [201] * 5
    world.pass_time(240)
    assert sorted(world.target.counts()) == [f"j{place}" for place in range(25, 30)]
    assert world.items(keys.CLAIM_PREFIX) == []


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_what_fails_before_the_first_job_is_written_fails_the_call(http: Http, aws: Aws, operation: str) -> None:
    with faults.refusing(f"dynamodb:{operation}"):
        answer = http.post(
            "/v1/jobs:batch", {"jobs": [{"target": ECHO, "depends_on": ["x"]}, {**SOON, "payload": "x" * 600}]}
        )
    assert answer.status == 503
    assert jobs(aws) == []


@pytest.mark.backends("memory")  # minutes, second by second
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "point", ["dynamodb:PutItem", "dynamodb:BatchExecuteStatement", "sqs:SendMessageBatch", "dynamodb:DeleteItem"]
)
def test_a_call_that_dies_loses_nothing_that_it_has_written(http: Http, world: World, point: str, when: str) -> None:
    sent = [{**SOON, "job_id": f"j{place:02d}"} for place in range(30)]
    sent += [{"target": ECHO, "job_id": "child", "depends_on": ["j00", "j29"]}]
    with faults.crash(**{when: point}, nth=1):
        http.post("/v1/jobs:batch", {"jobs": sent})
    there = set(jobs(world.aws))
    world.pass_time(400, step_s=5)
    assert set(world.target.counts()) == there
    assert set(world.target.counts().values()) <= {1}
    assert world.items(keys.CLAIM_PREFIX) == []
    assert world.audit().findings == 0


def test_time_is_kept(http: Http, world: World) -> None:
    """What cannot be written in time is said to be so; what cannot be sent in time is left to recovery."""

    def slow(call: Call) -> bool:
        if call.operation == "BatchExecuteStatement":
            world.clock.advance(10)
        return False

    with faults.refusing(slow):
        results = batch(http, *[{**SOON, "job_id": f"j{place}"} for place in range(75)])
    assert statuses(results) == [201] * 50 + [503] * 25
    world.pass_time(240)
    assert len(world.target.calls) == 50


class throttling(Observer):  # noqa: N801 - reads as the other faults do
    """Refuses the statements at `places` of the first `times` batches, each time where they then stand."""

    order = calls.FAULTS

    def __init__(
        self, *, times: int, places: tuple[int, ...], code: str = "ThrottlingError", made: bool = False
    ) -> None:
        self.times, self.places, self.code, self.made = times, places, code, made
        self.count = 0
        self.keys: set[str] = set()

    def __enter__(self) -> "throttling":
        calls.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        calls.remove(self)

    def on_request(self, call: Call) -> None:
        if call.operation != "BatchExecuteStatement" or not call.params["Statements"][0]["Statement"].startswith(
            "INSERT"
        ):
            return
        statements = call.params["Statements"]
        pks = [statement["Parameters"][0]["S"] for statement in statements]
        if not self.keys:
            self.keys = {pks[place] for place in self.places}
        if self.times <= 0 or not self.keys & set(pks):
            return
        self.times -= 1
        call.notes["refused"] = [place for place, pk in enumerate(pks) if pk in self.keys]
        rest = [s for s, pk in zip(statements, pks, strict=True) if pk not in self.keys]
        call.notes["nothing left"] = not self.made and not rest
        if not self.made and rest:
            call.params["Statements"] = rest

    def answer(self, call: Call) -> dict[str, Any] | None:
        return {"Responses": []} if call.notes.get("nothing left") else None

    def on_answer(self, call: Call) -> None:
        for place in call.notes.get("refused", ()):
            self.count += 1
            error = {"Error": {"Code": self.code, "Message": "made up by the test"}}
            assert call.answer is not None
            if self.made:
                call.answer["Responses"][place] = error
            else:
                call.answer["Responses"].insert(place, error)


def records(aws: Aws) -> list[Any]:
    return [item for item in all_items(aws) if item[keys.SK]["S"] == "idem"]


def body(**more: Any) -> dict[str, Any]:
    return {
        "jobs": [
            {**SOON, "payload": {"n": 30.25}, "tags": {"b": "1", "a": "2"}, "name": "one"},
            {**SOON, "timeout_s": 0},
            {"target": ECHO, "every": "1h", **more},
        ]
    }


@ON_BOTH
def test_the_same_key_and_body_have_the_same_answer_and_the_same_jobs(http: Http, world: World, aws: Aws) -> None:
    first = http.post("/v1/jobs:batch", body(), headers=KEY)
    assert first.status == 200
    assert "idempotent-replay" not in first.headers
    there = jobs(aws)
    world.pass_time(60)
    again = http.post("/v1/jobs:batch", body(), headers=KEY)
    assert again.headers["idempotent-replay"] == "true"
    assert again.text == first.text
    assert jobs(aws) == there
    other = http.post("/v1/jobs:batch", body(name="x"), headers=KEY)
    assert (other.status, len(jobs(aws))) == (422, 2)
    single = http.post("/v1/jobs", SOON, headers=KEY)
    assert single.status == 422


def test_a_kept_answer_is_small_whatever_the_body(http: Http, aws: Aws) -> None:
    tags = {f"{place:02d}" + "é" * 120: "ü" * 250 for place in range(20)}
    wrong = {
        "target": {"kind": "python", "handler": "nobody"},
        **{f"field{n}" + "x" * 100: "y" * 100 for n in range(9)},
    }
    sent = {"jobs": [{**LATER, "payload": "x" * 20_000, "tags": tags, "name": "n" * 128}] * 60 + [wrong] * 40}
    first = http.post("/v1/jobs:batch", sent, headers=KEY)
    (record,) = records(aws)
    assert len(json.dumps(record)) < 100_000
    assert http.post("/v1/jobs:batch", sent, headers=KEY).text == first.text


@pytest.mark.backends("memory")  # minutes, second by second
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_retry_of_a_call_that_died_makes_what_is_missing_and_nothing_twice(
    http: Http, world: World, aws: Aws, when: str, nth: int
) -> None:
    sent = {"jobs": [*([SOON] * 30), {**SOON, "job_id": "last"}, {"target": ECHO, "depends_on": ["last"]}]}
    with faults.crash(**{when: "dynamodb:BatchExecuteStatement"}, nth=nth):
        http.post("/v1/jobs:batch", sent, headers=KEY)
    before = set(jobs(aws))
    assert http.post("/v1/jobs:batch", sent, headers=KEY).status == 409
    world.clock.advance(31)
    answer = http.post("/v1/jobs:batch", sent, headers=KEY)
    assert statuses(answer.document["results"]) == [201] * 32
    assert before <= set(jobs(aws)) == {result["job"]["job_id"] for result in answer.document["results"]}
    world.pass_time(400, step_s=5)
    assert len(world.target.counts()) == 32
    assert set(world.target.counts().values()) == {1}


def test_a_retry_writes_what_could_not_be_written_before(http: Http, world: World, aws: Aws) -> None:
    sent = {"jobs": [SOON, SOON]}
    with throttling(times=4, places=(1,)):
        first = http.post("/v1/jobs:batch", sent, headers=KEY)
    assert statuses(first.document["results"]) == [201, 503]
    again = http.post("/v1/jobs:batch", sent, headers=KEY)
    assert "idempotent-replay" not in again.headers
    assert statuses(again.document["results"]) == [201, 201]
    assert again.document["results"][0]["job"]["job_id"] == first.document["results"][0]["job"]["job_id"]
    assert len(jobs(aws)) == 2
    assert http.post("/v1/jobs:batch", sent, headers=KEY).headers["idempotent-replay"] == "true"
