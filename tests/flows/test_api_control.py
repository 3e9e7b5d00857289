"""PATCH, pause, resume, trigger and redrive over HTTP: documents, statuses, headers and problems."""

from typing import Any

import pytest

from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Answer, Http
from tests.support.world import SUCCEED, World, failure

NOW = "2026-11-30T11:58:00Z"
VERBS = ("pause", "resume", "trigger", "redrive")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


def submit(http: Http, job_id: str = "a", **body: Any) -> Any:
    body = body or {"every": "1h"}
    answer = http.post("/v1/jobs", {"job_id": job_id, "target": ECHO, **body})
    assert answer.status == 201, answer.text
    return answer.document


def patch(http: Http, body: Any, job_id: str = "a", **headers: str) -> Answer:
    return http.call("PATCH", f"/v1/jobs/{job_id}", body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def test_pause_and_resume_answer_with_the_job(http: Http) -> None:
    made = submit(http)
    paused = http.post("/v1/jobs/a:pause")
    assert paused.status == 200
    assert paused.document == {**made, "status": "paused", "next_run_at": None, "version": 2}
    assert http.post("/v1/jobs/a:pause", {}).document == paused.document
    assert http.get("/v1/jobs/a").document == paused.document
    resumed = http.post("/v1/jobs/a:resume")
    assert resumed.document == {**made, "version": 3}
    assert http.post("/v1/jobs/a:resume").text == resumed.text


def test_trigger_answers_202_with_the_run_and_its_place(http: Http, world: World) -> None:
    submit(http)
    world.clock.advance(0.5)
    answer = http.post("/v1/jobs/a:trigger")
    moment = "2026-11-30T11:58:00.5Z"
    assert (answer.status, answer.headers["location"]) == (202, f"/v1/jobs/a/runs/{moment}")
    run = answer.document
    assert (run["scheduled_for"], run["requested_at"], run["status"], run["attempts"]) == (
        moment,
        moment,
        "enqueued",
        [],
    )
    assert http.get(answer.headers["location"]).document == run
    world.deliver()
    run = http.get(answer.headers["location"]).document
    assert (run["status"], run["requested_at"], len(run["attempts"])) == ("succeeded", moment, 1)
    (listed,) = http.get("/v1/jobs/a/runs").document["runs"]
    assert listed == run


def test_redrive_answers_202_with_the_run_or_with_what_was_redriven(http: Http, world: World) -> None:
    world.target.script = lambda call: failure()
    submit(http, every="10s", max_runs=2, retry={"max_attempts": 1})
    world.pass_time(30)
    path = "/v1/jobs/a/runs/2026-11-30T11:58:10Z"
    one = http.post(f"{path}:redrive")
    assert one.status == 202
    assert (one.document["status"], len(one.document["attempts"])) == ("enqueued", 1)
    assert one.document["requested_at"] == "2026-11-30T11:58:30Z"
    every = http.post("/v1/jobs/a:redrive")
    assert (every.status, every.document) == (202, {"redriven": ["2026-11-30T11:58:20Z"], "more": False})
    assert http.post("/v1/jobs/a:redrive").document == {"redriven": [], "more": False}
    world.target.script = lambda call: SUCCEED
    world.deliver()
    assert [attempt["outcome"] for attempt in http.get(path).document["attempts"]] == ["failed", "succeeded"]


def test_patch_answers_with_the_job_as_it_then_is(http: Http) -> None:
    made = submit(http, cron="0 9 * * *", payload={"a": 30.40}, tags={"x": "1"}, deadline_s=60)
    answer = patch(http, {"name": "n", "tags": {"y": "2"}, "deadline_s": None, "payload": [1]})
    assert answer.status == 200
    changed = {"name": "n", "tags": {"x": "1", "y": "2"}, "deadline_s": None, "payload": [1], "version": 2}
    assert answer.document == {**made, **changed}
    assert http.get("/v1/jobs/a").text == answer.text
    assert patch(http, {"name": "n"}).document["version"] == 2  # nothing has changed


def test_numbers_of_a_changed_payload_keep_their_digits_and_others_are_left_alone(http: Http) -> None:
    submit(http)
    answer = http.call("PATCH", "/v1/jobs/a", '{"payload":{"a":30.40,"n":9007199254740993,"e":1E+2}}')
    assert '"payload":{"a":30.40,"n":9007199254740993,"e":1E+2}' in answer.text
    assert '"payload":{"a":30.40,"n":9007199254740993,"e":1E+2}' in patch(http, {"name": "n"}).text
    assert patch(http, {"payload": None}).document["payload"] is None


@pytest.mark.parametrize(
    ("header", "status"),
    [("1", 200), ('"1"', 200), ('W/"1"', 200), ('"7", "1"', 200), ("*", 200), ("2", 412), ('"0"', 412)],
)
def test_if_match_names_the_version(http: Http, header: str, status: int) -> None:
    made = submit(http)
    answer = patch(http, {"name": "n"}, If_Match=header)
    assert answer.status == status
    if status == 412:
        assert answer.document["type"] == "urn:duetime:problem:precondition-failed"
        assert "version 1" in answer.document["detail"]
        assert http.get("/v1/jobs/a").document == made


@pytest.mark.parametrize("header", ["", "x", '"1', '"1".', "1,", "-1", "1.0", "9" * 16, '"é"'])
def test_an_if_match_that_names_no_version_is_refused(http: Http, header: str) -> None:
    submit(http)
    answer = patch(http, {"name": "n"}, If_Match=header)
    assert (answer.status, answer.fields) == (400, ["If-Match"])


def test_unknown_jobs_are_404(http: Http) -> None:
    for verb in VERBS:
        answer = http.post(f"/v1/jobs/nobody:{verb}")
        assert (answer.status, answer.document["type"]) == (404, "urn:duetime:problem:job-not-found"), verb
    assert patch(http, {"name": "n"}, "nobody").status == 404
    assert http.post(f"/v1/jobs/nobody/runs/{NOW}:redrive").status == 404
    submit(http)
    assert http.post(f"/v1/jobs/a/runs/{NOW}:redrive").status == 404


def test_jobs_that_are_cancelled_or_over_are_409(http: Http, world: World) -> None:
    submit(http, "gone")
    submit(http, "over", run_at=NOW)
    http.post("/v1/jobs/gone:cancel")
    world.deliver()
    for job_id in ("gone", "over"):
        for verb in ("pause", "resume", "trigger"):
            answer = http.post(f"/v1/jobs/{job_id}:{verb}")
            assert (answer.status, answer.document["type"]) == (409, "urn:duetime:problem:conflict"), (job_id, verb)
            assert job_id in answer.document["detail"]
        assert patch(http, {"name": "n"}, job_id).status == 409
    assert http.post("/v1/jobs/gone:redrive").status == 409
    over = http.post(f"/v1/jobs/over/runs/{NOW}:redrive")
    assert (over.status, "is succeeded" in over.document["detail"]) == (409, True)


@pytest.mark.parametrize("verb", VERBS)
def test_these_calls_take_no_body_and_no_query(http: Http, verb: str) -> None:
    submit(http)
    for body in ('{"x":1}', "null", "[]", "x"):
        assert http.post(f"/v1/jobs/a:{verb}", body).fields == ["body"], body
    assert http.call("POST", f"/v1/jobs/a:{verb}", query={"x": "1"}).fields == ["x"]
    assert http.post(f"/v1/jobs/a b:{verb}").fields == ["job_id"]
    for moment in ("x", "2026-11-30", "2026-11-30T11:58:00", "%"):
        assert http.post(f"/v1/jobs/a/runs/{moment}:redrive").fields == ["scheduled_for"], moment
    assert http.get("/v1/jobs/a").document["version"] == 1


def test_a_job_whose_id_ends_like_a_call_is_told_from_the_call(http: Http) -> None:
    submit(http, "a:pause")
    assert http.post("/v1/jobs/a:pause:pause").document["status"] == "paused"
    assert http.get("/v1/jobs/a:pause").document["status"] == "paused"
    assert http.post("/v1/jobs/a:pause").status == 404  # of job a
