"""The API of groups and of overlap: what is taken, what is answered, what is refused."""

from typing import Any

import pytest

from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import World


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


def limited(http: Http, max_running: Any, group: str = "tenant-7") -> Any:
    return http.call("PUT", f"/v1/groups/{group}", {"max_running": max_running})


def test_a_limit_is_set_changed_shown_and_taken_away(http: Http) -> None:
    group = "/v1/groups/tenant-7"
    assert http.get(group).document == {"group": "tenant-7", "max_running": None, "running": 0}
    for max_running in (1, 100, 7, 7, None, None, 3):
        shown = {"group": "tenant-7", "max_running": max_running, "running": 0}
        answer = limited(http, max_running)
        assert (answer.status, answer.document) == (200, shown)
        assert http.get(group).document == shown
    assert http.get("/v1/groups/tenant-8").document["max_running"] is None


WRONG = (0, -1, 101, 10**30, 10**400, True, False, "2", "", 2.5, 2.0, [], {}, [2])


@pytest.mark.parametrize("max_running", WRONG, ids=lambda value: repr(value)[:12])
def test_a_wrong_limit_is_refused_by_name_and_nothing_is_stored(http: Http, world: World, max_running: Any) -> None:
    answer = limited(http, max_running)
    assert (answer.status, answer.fields) == (400, ["max_running"])
    assert world.items() == []
    limited(http, 5)
    assert limited(http, max_running).status == 400
    assert http.get("/v1/groups/tenant-7").document["max_running"] == 5


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["max_running"]),
        ({"max_runing": 3}, ["max_runing", "max_running"]),
        ({"max_running": 3, "group": "x"}, ["group"]),
        ("", ["body"]),
        ("[]", ["body"]),
        ('{"max_running": 3, "max_running": 4}', ["max_running"]),
        (b"\xff", ["body"]),
        ("[" * 100_000, ["body"]),
    ],
    ids=repr,
)
def test_a_wrong_body_is_refused(http: Http, world: World, body: Any, fields: list[str]) -> None:
    answer = http.call("PUT", "/v1/groups/g", body)
    assert (answer.status, answer.fields) == (400, fields)
    assert world.items() == []


@pytest.mark.parametrize("group", ["-x", " g", "a b", "a+b", "é", "x" * 129, "a%2fb", "..", "g\u0000"], ids=repr)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_wrong_group_is_refused(http: Http, world: World, method: str, group: str) -> None:
    answer = http.call(method, f"/v1/groups/{group}", {"max_running": 3} if method == "PUT" else None)
    assert answer.status in (400, 404)
    assert answer.fields == (["group"] if answer.status == 400 else [])
    assert world.items() == []


def test_other_calls_on_groups_are_refused(http: Http) -> None:
    assert http.get("/v1/groups/g", a="b").fields == ["a"]
    assert http.call("PUT", "/v1/groups/g", {"max_running": 1}, query={"a": "b"}).fields == ["a"]
    refused = http.call("DELETE", "/v1/groups/g")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, PUT")
    assert http.get("/v1/groups").status == 404
    assert http.call("PUT", "/v1/groups/g", "{}", headers={"content-type": "text/plain"}).status == 415


def test_overlap_is_taken_shown_changed_and_counted(http: Http, world: World, clock: ManualClock) -> None:
    for overlap in ("allow", "skip", "queue", "replace"):
        made = http.post("/v1/jobs", {"job_id": overlap, "target": ECHO, "every": "20s", "overlap": overlap})
        assert (made.status, made.document["overlap"], made.document["overlap_skipped"]) == (201, overlap, 0)
    changed = http.call("PATCH", "/v1/jobs/allow", {"overlap": "queue"})
    assert (changed.status, changed.document["overlap"]) == (200, "queue")
    assert http.call("PATCH", "/v1/jobs/allow", {"overlap": None}).document["overlap"] == "allow"

    def handler(call: Any) -> Any:
        world.target.script = plain
        clock.advance(20)
        world.executor.run([one for one in world.receive() if '"skip"' in one.body])
        return plain(call)

    plain, world.target.script = world.target.script, handler
    clock.advance(20)
    world.executor.run([one for one in world.receive() if '"skip"' in one.body])
    shown = http.get("/v1/jobs/skip").document
    assert [(run["status"], run["reason"]) for run in shown["runs"]] == [("skipped", "overlap"), ("succeeded", None)]
    assert shown["overlap_skipped"] == 1
    for verb in ("pause", "resume", "cancel"):
        assert http.post(f"/v1/jobs/skip:{verb}").document["overlap_skipped"] == 1


@pytest.mark.parametrize("overlap", ["Skip", "none", "", None, True, 1, [], {"policy": "skip"}], ids=repr)
def test_a_wrong_overlap_is_refused_by_name(http: Http, world: World, overlap: Any) -> None:
    answer = http.post("/v1/jobs", {"target": ECHO, "every": "20s", "overlap": overlap})
    assert (answer.status, answer.fields) == (400, ["overlap"])
    assert world.items() == []
