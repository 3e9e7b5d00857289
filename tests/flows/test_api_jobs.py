"""The calls of the API on a whole deployment, through the function that is deployed."""

import re
from datetime import UTC, datetime

import pytest

from shared.model.run import Outcome, Result
from tests.support.aws import Aws, all_items
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import World, failure

KEYS_OF_A_JOB = [
    "job_id",
    "name",
    "group",
    "tags",
    "status",
    "version",
    "target",
    "payload",
    "run_at",
    "cron",
    "every",
    "timezone",
    "next_run_at",
    "created_at",
    "start_at",
    "end_at",
    "max_runs",
    "jitter_s",
    "catch_up",
    "deadline_s",
    "dst_gap",
    "overlap",
    "overlap_skipped",
    "priority",
    "retry",
    "timeout_s",
    "depends_on",
    "on_parent_failure",
    "runs",
]


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


def test_a_job_is_answered_whole_and_the_same_by_get(http: Http) -> None:
    target = '"target":{"kind":"python","handler":"demo.echo"}'
    made = http.post("/v1/jobs", f'{{{target},"run_at":"2026-12-24T17:00:00+05:30","payload":{{"b":1,"a":30.40}}}}')
    assert made.status == 201
    job = made.document
    assert list(job) == KEYS_OF_A_JOB
    assert re.fullmatch("[0-9a-f]{32}", job["job_id"])
    assert made.headers["location"] == f"/v1/jobs/{job['job_id']}"
    assert job["run_at"] == job["next_run_at"] == "2026-12-24T11:30:00Z"
    assert (job["status"], job["version"], job["created_at"]) == ("scheduled", 1, "2026-11-30T11:58:00Z")
    retry = {"max_attempts": 3, "base_s": 10, "factor": 2, "max_s": 3600, "retry_on": [], "give_up_on": []}
    assert job["retry"] == retry
    assert (job["tags"], job["runs"], job["name"]) == ({}, [], None)
    assert '"payload":{"b":1,"a":30.40}' in made.text
    assert '"base_s":10,' in made.text
    assert http.get(f"/v1/jobs/{job['job_id']}").text == made.text


def test_every_field_comes_back_as_it_was_sent(http: Http) -> None:
    body = {
        "job_id": "reports:nightly.v2",
        "name": "Nachtbericht 夜",
        "group": "reports",
        "tags": {"team": "blue", "note": ""},
        "target": ECHO,
        "payload": ["x", None, True],
        "cron": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "start_at": "2027-01-01T00:00:00Z",
        "end_at": "2027-12-31T23:59:59+01:00",
        "max_runs": 7,
        "jitter_s": 5,
        "catch_up": "skip",
        "deadline_s": 90,
        "dst_gap": "skip",
        "overlap": "allow",
        "priority": "normal",
        "retry": {"max_attempts": 100, "base_s": 0, "factor": 1.5, "max_s": 604800}
        | {"retry_on": ["timed_out", "lost"], "give_up_on": ["billing.CardError", "x" * 128]},
        "timeout_s": 105,
    }
    made = http.post("/v1/jobs", body)
    assert made.status == 201, made.text
    shown = http.get("/v1/jobs/reports:nightly.v2").document
    assert shown == made.document
    assert {name: shown[name] for name in body} == {**body, "end_at": "2027-12-31T22:59:59Z"}
    assert shown["every"] is None


def test_a_run_is_shown_with_its_attempts_and_its_result_to_the_digit(http: Http, world: World) -> None:
    world.target.script = lambda call: Result(outcome=Outcome.SUCCEEDED, result='{"a":30.40,"n":9007199254740993}')
    http.post("/v1/jobs", {"job_id": "once", "target": ECHO, "run_at": "2026-11-30T11:58:20Z"})
    assert http.get("/v1/jobs/once").document["status"] == "enqueued"
    world.clock.advance(20)
    world.deliver()
    answer = http.get("/v1/jobs/once")
    job = answer.document
    assert (job["status"], job["next_run_at"]) == ("succeeded", None)
    assert '"result":{"a":30.40,"n":9007199254740993}' in answer.text
    (run,) = job["runs"]
    assert list(run) == [
        "job_id",
        "scheduled_for",
        "status",
        "reason",
        "result",
        "progress",
        "missed",
        "missed_until",
        "requested_at",
        "attempts",
    ]
    (attempt,) = run["attempts"]
    assert list(attempt) == [
        "attempt",
        "worker_id",
        "started_at",
        "lease_expires_at",
        "finished_at",
        "outcome",
        "error",
        "error_kind",
    ]
    assert (attempt["attempt"], attempt["outcome"], attempt["error"]) == (1, "succeeded", None)
    assert (attempt["error_kind"], run["progress"]) == (None, None)
    assert http.get("/v1/jobs/once/runs").document == {"runs": [run], "cursor": None}
    assert http.get("/v1/jobs/once/runs/2026-11-30T11:58:20Z").document == run
    # The same instant, said in another zone.
    assert http.get("/v1/jobs/once/runs/2026-11-30T12:58:20+01:00").document == run


def test_history_comes_in_pages(http: Http, world: World) -> None:
    http.post("/v1/jobs", {"job_id": "often", "target": ECHO, "every": "10s", "max_runs": 5})
    for _ in range(6):
        world.clock.advance(10)
        world.deliver()
    first = http.get("/v1/jobs/often/runs", limit="3").document
    assert [run["scheduled_for"][14:] for run in first["runs"]] == ["58:50Z", "58:40Z", "58:30Z"]
    second = http.get("/v1/jobs/often/runs", limit="3", cursor=first["cursor"]).document
    assert [run["scheduled_for"][14:] for run in second["runs"]] == ["58:20Z", "58:10Z"]
    assert second["cursor"] is None
    assert http.get("/v1/jobs/often").document["status"] == "completed"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "1,2"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": ""}, "cursor"),
        ({"Limit": "3"}, "Limit"),
    ],
)
def test_a_bad_query_is_named(http: Http, query: dict[str, str], field: str) -> None:
    http.post("/v1/jobs", {"job_id": "j", "target": ECHO, "every": "1h"})
    answer = http.get("/v1/jobs/j/runs", **query)
    assert (answer.status, answer.fields) == (400, [field])


def test_cancel_is_idempotent_and_says_what_is_still_running(http: Http, world: World, aws: Aws) -> None:
    """C46: unknown is 404 and makes nothing; twice is the same answer; finished is 409."""
    assert http.post("/v1/jobs/nobody:cancel").status == 404
    assert all_items(aws) == []
    http.post("/v1/jobs", {"job_id": "j", "target": ECHO, "run_at": "2027-01-01T00:00:00Z"})
    first = http.post("/v1/jobs/j:cancel")
    assert (first.status, first.document["status"], first.document["running"]) == (200, "cancelled", [])
    assert http.post("/v1/jobs/j:cancel", {}).text == first.text
    assert list(first.document) == [*KEYS_OF_A_JOB, "running"]

    seen = []
    world.target.script = lambda call: seen.append(http.post("/v1/jobs/busy:cancel").document) or failure()
    http.post("/v1/jobs", {"job_id": "busy", "target": ECHO, "run_at": "2026-11-30T11:58:00Z"})
    world.deliver()
    assert seen[0]["running"] == ["2026-11-30T11:58:00Z"]
    # C42: it then fails with attempts left, and there is no further attempt.
    assert http.get("/v1/jobs/busy").document["status"] == "cancelled"

    world.target.script = lambda call: Result(outcome=Outcome.SUCCEEDED, result="null")
    http.post("/v1/jobs", {"job_id": "done", "target": ECHO, "run_at": "2026-11-30T11:58:00Z"})
    world.deliver()
    over = http.post("/v1/jobs/done:cancel")
    assert (over.status, over.document["type"].rsplit(":", 1)[1]) == (409, "conflict")
    assert http.post("/v1/jobs/j:cancel", {"why": "?"}).fields == ["body"]


def test_the_id_of_a_live_job_is_taken_until_it_is_over(http: Http, clock: ManualClock) -> None:
    body = {"job_id": "j", "target": ECHO, "every": "1h"}
    assert http.post("/v1/jobs", body).status == 201
    clock.advance(1)
    assert http.post("/v1/jobs", body).status == 409
    http.post("/v1/jobs/j:cancel")
    again = http.post("/v1/jobs", body)
    assert (again.status, again.document["status"]) == (201, "scheduled")


def test_preview_shows_both_clocks_and_stores_nothing(http: Http, aws: Aws) -> None:
    body = {"cron": "30 2 * * *", "timezone": "America/New_York", "after": "2027-03-13T00:00:00Z", "count": 2}
    answer = http.post("/v1/preview", body).document
    assert answer["timezone"] == "America/New_York"
    before, gap = answer["times"]
    assert before == {"utc": "2027-03-13T07:30:00Z", "local": "2027-03-13T02:30:00-05:00", "note": None}
    assert (gap["utc"], gap["local"]) == ("2027-03-14T07:00:00Z", "2027-03-14T03:00:00-04:00")
    assert "does not exist" in gap["note"]
    assert len(http.post("/v1/preview", {"every": "1m"}).document["times"]) == 5
    assert http.post("/v1/preview", {"every": "1m", "count": 0}).fields == ["count"]
    assert http.post("/v1/preview", {"every": "1m", "count": 101}).fields == ["count"]
    assert http.post("/v1/preview", {"every": "1m", "after": "soon"}).fields == ["after"]
    assert http.post("/v1/preview", {"every": "1m", "target": ECHO}).fields == ["target"]
    assert all_items(aws) == []


def test_health_is_ok_once_every_shard_is_ticked(http: Http, world: World) -> None:
    before = http.get("/v1/health")
    assert (before.status, before.document["ok"]) == (503, False)
    world.tick()
    after = http.get("/v1/health")
    assert (after.status, after.document["ok"]) == (200, True)
    assert after.document["shards"] == [{"shard": 0, "last_tick_at": "2026-11-30T11:58:00Z", "epoch": 1}]
    world.clock.advance(240)
    assert http.get("/v1/health").status == 503


def test_health_looks_at_a_shard_that_only_drains(
    aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(aws, clock, shards=1).tick()
    http = Http(monkeypatch, World(aws, clock, shards=1, ticked_shards=3).api)
    answer = http.get("/v1/health")
    assert answer.status == 503
    assert [shard["epoch"] for shard in answer.document["shards"]] == [1, 0, 0]


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/", 404, None),
        ("GET", "/v1", 404, None),
        ("GET", "/v1/jobs/", 404, None),
        ("GET", "/v2/jobs", 404, None),
        ("GET", "/v1/jobs/a/b", 404, None),
        ("PUT", "/v1/jobs", 405, "GET, POST"),
        ("PUT", "/v1/jobs/j", 405, "GET, PATCH"),
        ("DELETE", "/v1/jobs/j", 405, "GET, PATCH"),
        ("POST", "/v1/jobs/j:explode", 405, "GET, PATCH"),
        ("DELETE", "/v1/jobs/j:cancel", 405, "GET, PATCH, POST"),
        ("PUT", "/v1/jobs/j:pause", 405, "GET, PATCH, POST"),
        ("GET", "/v1/jobs:batch", 405, "POST"),
        ("POST", "/v1/jobs/j/runs/2026-11-30T12:00:00Z:cancel", 405, "GET"),
        ("PUT", "/v1/jobs/j/runs/2026-11-30T12:00:00Z:redrive", 405, "GET, POST"),
        ("POST", "/v1/health", 405, "GET"),
        ("OPTIONS", "/v1/preview", 405, "POST"),
    ],
)
def test_what_the_api_does_not_have(http: Http, method: str, path: str, status: int, allow: str | None) -> None:
    answer = http.call(method, path)
    assert (answer.status, answer.headers.get("allow")) == (status, allow)


def test_c66_identifiers_in_the_path_are_strict(http: Http) -> None:
    http.post("/v1/jobs", {"job_id": "a", "target": ECHO, "every": "1h"})
    for job_id in ("a ", " a", "..", "%2e%2e%2fother", "é", "a%62", "é", "x" * 129, "a:b,c", "a#b", "a\\b"):
        answer = http.get(f"/v1/jobs/{job_id}")
        assert (answer.status, answer.fields) == (400, ["job_id"]), job_id
    for job_id in ("A", "a:b", "a.", "x" * 128):
        assert http.get(f"/v1/jobs/{job_id}").status == 404, job_id
    for path in (
        "/v1/jobs/../jobs/a",
        "/v1/jobs/a\nb",
        "/v1/jobs/a\n",
        "/v1/health\n",
    ):
        assert http.get(path).document["type"].endswith(":route-not-found"), path


def test_a_time_in_the_path_that_is_none_is_named(http: Http) -> None:
    http.post("/v1/jobs", {"job_id": "j", "target": ECHO, "every": "1h"})
    for text in ("yesterday", "2026-11-30", "2026-11-30T12:00:00", "1798711200000"):
        assert http.get(f"/v1/jobs/j/runs/{text}").fields == ["scheduled_for"]
    assert http.get("/v1/jobs/j/runs/2026-11-30T12:00:00Z").status == 404


def test_the_time_is_that_of_the_clock(http: Http, clock: ManualClock) -> None:
    clock.set(datetime(2030, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC))
    assert http.post("/v1/jobs", {"target": ECHO, "every": "1h"}).document["created_at"] == "2030-01-01T00:00:00.25Z"
