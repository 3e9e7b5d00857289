"""Lists of jobs over HTTP: what each query finds, in which order, and what it reads for that."""

from typing import Any

import pytest

from shared.model.run import Result
from shared.store import keys
from tests.support import calls, faults, memory_backend
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Answer, Http
from tests.support.world import SUCCEED, World, failure


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


Query = dict[str, str | list[str]]
APART = ("payload", "runs", "overlap_skipped")  # what a list would have to read beside the job


def pages(http: Http, **query: Any) -> list[list[str]]:
    """The ids of each page, to the end."""
    found: list[list[str]] = []
    while True:
        answer = http.get("/v1/jobs", **query)
        assert answer.status == 200, answer.text
        found.append([job["job_id"] for job in answer.document["jobs"]])
        if answer.document["cursor"] is None:
            return found
        query["cursor"] = answer.document["cursor"]
        assert len(found) < 500


def ids(http: Http, **query: Any) -> list[str]:
    """All that a query finds, in its order; nothing twice."""
    found = [job_id for page in pages(http, **query) for job_id in page]
    assert len(found) == len(set(found))
    return found


def row(http: Http, job_id: str, **query: Any) -> dict[str, Any]:
    (found,) = (job for job in http.get("/v1/jobs", limit="100", **query).document["jobs"] if job["job_id"] == job_id)
    return dict(found)


def some_of_each_status(world: World) -> dict[str, list[str]]:
    """Jobs by the status that they are shown with, at 11:58:05 or later."""

    def script(call: Any) -> Result:
        if call.job_id.startswith("fails"):
            return failure()
        if call.job_id.startswith("runs"):
            raise faults.CrashError("its process is gone")
        return SUCCEED

    world.target.script = script
    soon = {"run_at": "2026-11-30T11:58:00Z"}
    for job_id in ("succeeds-1", "succeeds-2", "fails-for-good"):
        world.submit(job_id=job_id, max_attempts=1, **soon)
    world.submit(job_id="fails-once", **soon)
    world.deliver()
    world.submit(job_id="skipped", run_at="2026-11-30T11:00:00Z", deadline_s=60)
    world.deliver()
    world.submit(job_id="cancelled", every="1h")
    world.cancel("cancelled")
    world.submit(job_id="once-cancelled", run_at="2026-11-30T11:59:00Z")
    world.cancel("once-cancelled")
    world.submit(job_id="used-up", every="1s", max_runs=2)
    world.clock.advance(5)
    world.deliver()
    world.submit(job_id="claimed", run_at="2026-11-30T11:59:00Z")
    world.submit(job_id="paused", every="1h")
    world.api.control.pause("paused", world.clock.now())
    world.submit(job_id="waits", run_at="2026-11-30T13:00:00Z")
    world.submit(job_id="recurs", every="1h")
    return {
        "succeeded": ["succeeds-1", "succeeds-2"],
        "dead_lettered": ["fails-for-good"],
        "failed": ["fails-once"],
        "skipped": ["skipped"],
        "cancelled": ["cancelled", "once-cancelled"],
        "completed": ["used-up"],
        "enqueued": ["claimed"],
        "paused": ["paused"],
        "scheduled": ["recurs", "waits"],
        "running": [],
    }


@pytest.mark.backends("moto", "memory", "emulator")
def test_each_status_is_found_and_shown_as_the_job_shows_it(http: Http, world: World) -> None:
    by_status = some_of_each_status(world)
    for status, job_ids in by_status.items():
        assert sorted(ids(http, status=status)) == job_ids, status
        for job_id in job_ids:
            shown = http.get(f"/v1/jobs/{job_id}").document
            assert shown["status"] == status
            assert row(http, job_id) == {k: v for k, v in shown.items() if k not in APART}
    assert sorted(ids(http)) == sorted(job_id for job_ids in by_status.values() for job_id in job_ids)


def test_a_row_has_all_of_a_job_but_its_payload_and_runs(http: Http) -> None:
    http.post("/v1/jobs", {"job_id": "j", "target": ECHO, "every": "1h", "tags": {"a": "b"}, "payload": {"n": 30.4}})
    (found,) = http.get("/v1/jobs").document["jobs"]
    assert list(found) == [key for key in http.get("/v1/jobs/j").document if key not in APART]
    assert '"base_s":10,' in http.get("/v1/jobs").text


def test_no_jobs(http: Http) -> None:
    queries: list[Query] = [
        {},
        {"group": "g"},
        {"status": "dead_lettered"},
        {"from": "2026-11-30T12:00:00Z", "to": "2026-11-30T12:10:00Z"},
    ]
    for query in queries:
        assert http.get("/v1/jobs", **query).document == {"jobs": [], "cursor": None}


@pytest.mark.backends("moto", "memory", "emulator")
def test_a_group_is_listed_newest_first(http: Http, world: World) -> None:
    for number in range(7):
        world.submit(job_id=f"j{number}", group="g" if number != 3 else "h", every="1h", tags={"n": str(number % 2)})
        world.clock.advance(0.5)
    assert pages(http, group="g", limit="2")[:3] == [["j6", "j5"], ["j4", "j2"], ["j1", "j0"]]
    assert ids(http, group="h") == ["j3"]
    assert ids(http, group="G") == []
    assert ids(http, group="g", tag="n:0", limit="1") == ["j6", "j4", "j2", "j0"]
    world.cancel("j4")
    assert ids(http, group="g", status="scheduled", limit="3") == ["j6", "j5", "j2", "j1", "j0"]
    assert ids(http, group="g", status="cancelled") == ["j4"]


def test_a_job_that_changes_its_group_changes_its_list(http: Http, world: World) -> None:
    for job_id in ("a", "b"):
        http.post("/v1/jobs", {"job_id": job_id, "target": ECHO, "every": "1h", "group": "old"})
    first = http.get("/v1/jobs", group="old", limit="1").document
    assert [job["job_id"] for job in first["jobs"]] == ["b"]
    assert http.call("PATCH", "/v1/jobs/a", {"group": "new"}).status == 200
    assert http.get("/v1/jobs", group="old", limit="1", cursor=first["cursor"]).document["jobs"] == []
    assert (ids(http, group="old"), ids(http, group="new")) == (["b"], ["a"])


def dead_letter(world: World, job_id: str, runs: int = 1, **spec: Any) -> None:
    """A recurring job of which `runs` runs were dead-lettered; it goes on."""
    world.target.script = lambda call: failure()
    world.submit(job_id=job_id, every="1s", max_attempts=1, max_runs=runs + 1, **spec)
    world.clock.advance(runs)
    world.deliver()
    world.target.script = lambda call: SUCCEED
    world.clock.advance(1)
    world.deliver()
    assert world.statuses(job_id) == ["dead_lettered"] * runs + ["succeeded"]


def test_a_job_with_many_dead_letters_is_one_row(http: Http, world: World) -> None:
    for number in range(9):
        dead_letter(world, f"j{number}", 1 + number % 3, group="g" if number < 5 else None)
    world.submit(job_id="fine", every="1h")
    every_one = [f"j{number}" for number in range(9)]
    for limit in ("1", "3", "100"):
        assert sorted(ids(http, status="dead_lettered", limit=limit)) == every_one
    assert sorted(ids(http, status="dead_lettered", group="g")) == ["j0", "j1", "j2", "j3", "j4"]
    # They are listed by a part and their id: what comes and goes moves no other.
    parts = [(keys.dead_part_of(job_id), job_id) for job_id in ids(http, status="dead_lettered")]
    assert parts == sorted(parts)


def test_a_redriven_run_leaves_the_list(http: Http, world: World) -> None:
    dead_letter(world, "j", 2)
    assert http.get("/v1/jobs", status="dead_lettered").document["jobs"][0]["status"] == "completed"
    for left, run in enumerate(reversed(http.get("/v1/jobs/j/runs").document["runs"][1:])):
        assert ids(http, status="dead_lettered") == ["j"], left
        path = f"/v1/jobs/j/runs/{run['scheduled_for']}:redrive"
        assert http.post(path).status == 202
    assert ids(http, status="dead_lettered") == []
    world.target.script = lambda call: failure()
    world.deliver()
    assert ids(http, status="dead_lettered") == ["j"]


def test_what_the_index_still_shows_of_a_redriven_run_is_not_believed(
    http: Http, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lags: 150 runs of one job, of which only the oldest and the newest are still dead-lettered."""
    if world.aws.backend != "memory":
        world = World(memory(world.clock), world.clock)
        http = Http(monkeypatch, world.api)
    dead_letter(world, "j", 150)
    table: Any = world.aws.dynamodb
    table.table.index_lag_s = 3600
    dead = world.api.inspect.history.dead_lettered("j", 200)
    for run in dead[1:-1]:
        world.api.again.redrive("j", run.scheduled_for, world.clock.now())
    assert ids(http, status="dead_lettered") == ["j"]
    world.api.again.redrive("j", dead[-1].scheduled_for, world.clock.now())
    assert ids(http, status="dead_lettered") == ["j"]  # found behind the first hundred
    world.api.again.redrive("j", dead[0].scheduled_for, world.clock.now())
    assert ids(http, status="dead_lettered") == []


def memory(clock: ManualClock) -> Aws:
    return memory_backend.create(clock.now)


def window(first: str, last: str) -> Query:
    return {"from": f"2026-11-30T{first}Z", "to": f"2026-11-30T{last}Z"}


@pytest.mark.backends("memory")  # some thousand queries
@pytest.mark.parametrize("shards", [1, 4])
def test_a_window_is_listed_by_time(aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, shards: int) -> None:
    world = World(aws, clock, shards=shards)
    http = Http(monkeypatch, world.api)
    times = ["12:30:00", "12:30:00", "12:30:59", "12:31:00", "12:29:59", "14:00:00", "18:29:59", "18:30:00"]
    for number, time in enumerate(times):
        world.submit(job_id=f"j{number}", run_at=f"2026-11-30T{time}Z")
    world.submit(job_id="hourly", cron="45 * * * *")
    minutes = [{"j0", "j1", "j2"}, {"j3"}, {"hourly"}, {"j5"}, {"j6"}]
    for limit in ("1", "2", "100"):
        found = ids(http, **window("12:30:00", "18:30:00"), limit=limit)
        assert [set(found[:3]), *({one} for one in found[3:])] == minutes
        if shards == 1:
            assert found[2] == "j2"
    assert ids(http, **window("12:30:00", "12:30:59")) == sorted(ids(http, **window("12:30:00", "12:30:59")))
    assert set(ids(http, **window("12:30:00", "12:30:59"))) == {"j0", "j1"}
    assert set(ids(http, status="scheduled", **window("12:30:59", "12:31:01"))) == {"j2", "j3"}


@pytest.mark.backends("moto", "memory", "emulator")
def test_many_jobs_of_one_second(http: Http, world: World) -> None:
    for number in range(25):
        world.submit(job_id=f"j{number}", run_at="2026-11-30T12:30:00Z")
    assert len(ids(http, limit="4", **window("12:30:00", "12:30:01"))) == 25


def test_a_window_that_no_index_has_finds_the_same(http: Http, world: World) -> None:
    for hour in range(12, 22):
        world.submit(job_id=f"at-{hour}", run_at=f"2026-11-30T{hour}:30:00Z")
    world.submit(job_id="daily", cron="0 21 * * *")
    world.submit(job_id="paused", cron="0 21 * * *")
    world.api.control.pause("paused", world.clock.now())
    assert sorted(ids(http, **window("13:30:00", "21:30:00"))) == [*(f"at-{hour}" for hour in range(13, 21)), "daily"]
    assert ids(http, **{"from": "2026-11-30T21:30:00Z"}) == ["at-21"]
    assert ids(http, to="2026-11-30T13:00:00Z") == ["at-12"]
    # What is claimed is no longer in the index of due times, and found with its status.
    world.submit(job_id="claimed", run_at="2026-11-30T12:00:00Z")
    assert ids(http, **window("12:00:00", "12:30:00")) == []
    assert ids(http, status="enqueued", **window("12:00:00", "12:30:00")) == ["claimed"]


def test_a_recurring_job_that_is_claimed_ahead(http: Http, world: World) -> None:
    """Its next time is claimed, and no longer in the index of due times; a group has it by what it shows."""
    world.submit(job_id="hourly", cron="0 * * * *", group="g")
    world.tick()
    (shown,) = http.get("/v1/jobs").document["jobs"]
    assert (shown["status"], shown["next_run_at"]) == ("scheduled", "2026-11-30T12:00:00Z")
    for query in (window("12:00:00", "12:30:00"), window("12:30:00", "13:30:00")):
        is_first = query["from"] == "2026-11-30T12:00:00Z"
        assert ids(http, group="g", **query) == (["hourly"] if is_first else [])
        assert ids(http, **query) == []
    world.clock.advance(121)
    assert ids(http, **window("12:30:00", "13:30:00")) == ["hourly"]


def test_a_job_is_read_again_before_it_is_shown_by_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index lags by an hour here: a cancelled job, a gone one and one that has moved are still in it."""
    world = World(memory(world.clock), world.clock)
    http = Http(monkeypatch, world.api)
    for job_id in ("cancelled", "stays", "moves", "out"):
        world.submit(job_id=job_id, run_at="2026-11-30T12:30:00Z")
    table: Any = world.aws.dynamodb
    assert len(ids(http, **window("12:00:00", "13:00:00"))) == 4
    table.table.index_lag_s = 3600
    world.cancel("cancelled")
    assert http.call("PATCH", "/v1/jobs/moves", {"run_at": "2026-11-30T12:45:00Z"}).status == 200
    assert http.call("PATCH", "/v1/jobs/out", {"run_at": "2026-11-30T13:45:00Z"}).status == 200
    assert ids(http, **window("12:00:00", "13:00:00")) == ["stays"]
    world.clock.advance(-0.001 + 3600)  # nearly
    assert ids(http, **window("12:00:00", "13:00:00")) == ["stays"]
    world.clock.advance(0.001)
    assert ids(http, **window("12:00:00", "13:00:00")) == ["stays", "moves"]


@pytest.mark.backends("moto", "memory", "emulator")
@pytest.mark.parametrize("limit", ["1", "7", "100"])
def test_all_jobs_page_by_page(http: Http, world: World, limit: str) -> None:
    for number in range(40):
        world.submit(job_id=f"j{number}", every="1h", tags={"n": str(number % 4), "x:y": "z"})
    assert len(ids(http, limit=limit)) == 40
    assert len(ids(http, tag=["n:1", "x:y:z"], limit=limit)) == 10
    assert ids(http, tag=["n:1", "n:2"], limit=limit) == []


def test_a_page_without_rows_is_not_the_last(aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call reads a bounded part of the table, however little of it fits."""
    world = World(memory(clock), clock)
    http = Http(monkeypatch, world.api)
    world.submit(job_id="j17", every="1h", tags={"wanted": ""})
    (item,) = world.items("job")
    table: Any = world.aws.dynamodb
    for number in range(6000):
        if number != 17:
            table.table.set((f"job#j{number}", "job"), {**item, "tags": {"M": {}}, **keys.job_key(f"j{number}")})
    with faults.logging() as log:
        found = pages(http, tag="wanted")
    assert sorted(found, key=len)[-1] == ["j17"]
    assert len(found) == 2
    assert sum(map(len, found)) == 1
    scans = log.of("dynamodb:Scan")
    assert [call.params["Limit"] for call in scans[:6]] == [100, 400, 1000, 1000, 1000, 1000]
    assert all(call.params["ConsistentRead"] for call in scans)


def test_a_call_that_takes_long_answers_with_what_it_has(http: Http, world: World) -> None:
    world.submit(job_id="j", run_at="2026-11-30T17:00:00Z")

    class Slow(faults.Log):
        def on_answer(self, call: Any) -> None:
            super().on_answer(call)
            world.clock.advance(0.5)

    slow = Slow()

    with calls.observing(slow):
        answer = http.get("/v1/jobs", **window("12:00:00", "18:00:00"))
    assert (answer.document["jobs"], answer.document["cursor"] is None) == ([], False)
    assert len(slow.of("dynamodb:Query")) == 8
    assert ids(http, **window("12:00:00", "18:00:00"), cursor=answer.document["cursor"]) == ["j"]


@pytest.mark.backends("memory")
def test_rows_are_read_by_hundreds(http: Http, world: World) -> None:
    for number in range(60):
        world.submit(job_id=f"j{number}", run_at="2026-11-30T11:58:00Z", group="g")
    world.deliver()
    for query in ({"status": "succeeded"}, {"group": "g", "status": "succeeded"}):
        with faults.logging() as log:
            assert len(http.get("/v1/jobs", limit="100", **query).document["jobs"]) == 60
        assert len(log.of("dynamodb:BatchGetItem")) <= 2
        assert log.of("dynamodb:GetItem") == []
    for status in ("paused", "scheduled"):  # their own items tell that they are not
        with faults.logging() as log:
            assert http.get("/v1/jobs", limit="100", status=status).document["jobs"] == []
        assert log.of("dynamodb:BatchGetItem") == []


def test_an_item_that_cannot_be_read_hides_itself_alone(http: Http, world: World, aws: Aws) -> None:
    for job_id in ("a", "b", "bad", "unplannable"):
        world.submit(job_id=job_id, every="1h", group="g")
    for job_id, value in (("bad", "nonsense"), ("unplannable", '{"every":"x","every_s":0}')):
        aws.dynamodb.update_item(
            TableName=aws.table,
            Key=keys.job_key(job_id),
            UpdateExpression="SET #schedule = :bad, #claimed_until = :later",
            ExpressionAttributeNames={"#schedule": "schedule", "#claimed_until": "claimed_until"},
            ExpressionAttributeValues={":bad": {"S": value}, ":later": {"S": "2026-11-30T13:00:00"}},
        )
    assert set(ids(http)) == {"a", "b"}
    assert set(ids(http, group="g")) == {"a", "b"}


@pytest.mark.backends("moto", "memory", "emulator")
@pytest.mark.parametrize(
    "query",
    [{}, {"group": "g"}, {"status": "dead_lettered"}, window("12:00:00", "14:00:00")],
    ids=["all", "group", "dead", "window"],
)
def test_what_a_page_ended_at_may_be_gone_at_the_next(http: Http, world: World, aws: Aws, query: Query) -> None:
    world.target.script = lambda call: failure()
    for number in range(9):
        when = {"run_at": "2026-11-30T13:00:00Z"}
        if query.get("status"):
            when = {"run_at": "2026-11-30T11:58:00Z"}
        world.submit(job_id=f"j{number}", group="g", max_attempts=1, **when)
    world.deliver()
    found: list[str] = []
    sent = {**query, "limit": "2"}
    while True:
        page = http.get("/v1/jobs", **sent).document
        found += [job["job_id"] for job in page["jobs"]]
        if page["cursor"] is None:
            break
        sent["cursor"] = page["cursor"]
        for item in world.items():  # all that is there of what was shown is removed, as by its TTL
            if keys.job_id_of(item[keys.PK]["S"]) in found:
                aws.dynamodb.delete_item(TableName=aws.table, Key={key: item[key] for key in (keys.PK, keys.SK)})
    assert sorted(found) == [f"j{number}" for number in range(9)]


BAD: list[tuple[Query, str]] = [
    ({"status": "done"}, "status"),
    ({"status": ""}, "status"),
    ({"status": ["paused", "running"]}, "status"),
    ({"group": "a b"}, "group"),
    ({"group": ""}, "group"),
    ({"tag": ""}, "tag"),
    ({"tag": "x" * 386}, "tag"),
    ({"tag": [f"t{n}" for n in range(21)]}, "tag"),
    ({"from": "yesterday"}, "from"),
    ({"from": "2026-11-30T12:00:00"}, "from"),
    ({"to": "1796039880"}, "to"),
    ({"from": "2026-11-30T12:00:00Z", "to": "2026-11-30T12:00:00Z"}, "to"),
    ({"from": "2026-11-30T12:00:00Z", "to": "2026-11-30T11:00:00Z"}, "to"),
    ({"limit": "0"}, "limit"),
    ({"limit": "101"}, "limit"),
    ({"limit": "ten"}, "limit"),
    ({"cursor": "x"}, "cursor"),
    ({"cursor": ""}, "cursor"),
    ({"offset": "3"}, "offset"),
]


@pytest.mark.parametrize(("query", "field"), BAD)
def test_what_is_wrong_with_a_query_is_named(http: Http, query: Query, field: str) -> None:
    answer = http.get("/v1/jobs", **query)
    assert (answer.status, answer.fields) == (400, [field])


def test_a_plus_that_a_query_turned_into_a_space_is_explained(http: Http) -> None:
    answer = http.get("/v1/jobs", **{"from": "2026-11-30T12:00:00 01:00"})
    assert answer.fields == ["from"]
    assert "%2B" in answer.document["detail"]
    assert http.get("/v1/jobs", **{"from": "2026-11-30T12:00:00+01:00"}).status == 200


@pytest.mark.parametrize("raw", ["tag=%FF", "&".join(["tag=a"] * 51), "=", "tag", "%00=1", "status=scheduled&&"])
def test_a_query_that_cannot_be_read(http: Http, raw: str) -> None:
    answer: Answer = http.call("GET", "/v1/jobs", raw_query=raw)
    assert answer.status == (200 if raw == "status=scheduled&&" else 400)
