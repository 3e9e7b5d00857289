"""Cursors: opaque, of one list and one deployment, and never trusted before they are found unchanged."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from functions.submit import cursors as module
from functions.submit.cursors import Cursors
from functions.submit.lists import read_list_query
from shared.model.errors import InputError
from shared.rules.listing import plan_list
from shared.store import keys
from shared.store.cursor_secret import CursorSecret
from shared.store.table import Table
from tests.support import calls, faults
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.http import Http
from tests.support.world import World, failure

pytestmark = pytest.mark.backends("memory")  # but for the secret, the table has no part in it

WINDOW = {"from": "2026-11-30T12:00:00Z", "to": "2026-11-30T14:00:00Z"}
LISTS: dict[str, dict[str, Any]] = {
    "all": {},
    "group": {"group": "g"},
    "dead": {"status": "dead_lettered"},
    "window": WINDOW,
    "scheduled": {"status": "scheduled"},
    "tags": {"tag": ["a", "b"]},
}


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


@pytest.fixture
def given_out(http: Http, world: World) -> dict[str, str]:
    """A cursor of each list, and one of a job's runs."""
    tags = {"a": "1", "b": "2"}
    for number in range(3):
        world.submit(job_id=f"in-an-hour-{number}", run_at="2026-11-30T13:00:00Z", group="g", tags=tags)
        world.target.script = lambda call: failure()
        world.submit(job_id=f"dead-{number}", every="1s", max_attempts=1, max_runs=2)
        world.submit(job_id=f"recurs-{number}", every="1h", tags=tags)
    world.clock.advance(2)
    world.deliver()
    found = {name: http.get("/v1/jobs", limit="1", **query).document["cursor"] for name, query in LISTS.items()}
    found["runs"] = http.get("/v1/jobs/dead-0/runs", limit="1").document["cursor"]
    assert all(found.values())
    return found


def ask(http: Http, name: str, cursor: str) -> Any:
    if name == "runs":
        return http.get("/v1/jobs/dead-0/runs", cursor=cursor)
    return http.get("/v1/jobs", cursor=cursor, **LISTS[name])


def test_a_cursor_is_of_its_own_list_alone(http: Http, given_out: dict[str, str]) -> None:
    for name in given_out:
        for other, cursor in given_out.items():
            answer = ask(http, name, cursor)
            if name == other:
                assert answer.status == 200
            else:
                assert (answer.status, answer.fields) == (400, ["cursor"]), (name, other)
    assert http.get("/v1/jobs/dead-1/runs", cursor=given_out["runs"]).fields == ["cursor"]


def test_only_what_means_the_same_is_the_same_list(http: Http, given_out: dict[str, str]) -> None:
    same: list[tuple[str, dict[str, Any]]] = [
        ("tags", {"tag": ["b", "a", "b"]}),
        ("window", {"from": "2026-11-30T13:00:00+01:00", "to": "2026-11-30T14:00:00.000Z"}),
    ]
    for name, query in same:
        assert http.get("/v1/jobs", limit="50", cursor=given_out[name], **query).status == 200
    others: list[tuple[str, dict[str, Any]]] = [
        ("all", {"group": "g"}),
        ("group", {"group": "G"}),
        ("group", {"group": "g", "status": "scheduled"}),
        ("tags", {"tag": "a"}),
        ("window", {**WINDOW, "to": "2026-11-30T14:00:00.001Z"}),
        ("window", {"from": WINDOW["from"]}),
        ("dead", {"status": "dead_lettered", "group": "g"}),
    ]
    for name, query in others:
        assert http.get("/v1/jobs", cursor=given_out[name], **query).fields == ["cursor"], query


@pytest.mark.parametrize("name", ["window", "runs"])
def test_a_changed_cursor_is_refused(http: Http, given_out: dict[str, str], name: str) -> None:
    cursor = given_out[name]
    changed = [
        cursor[:place] + ("A" if char != "A" else "B") + cursor[place + 1 :] for place, char in enumerate(cursor)
    ]
    changed += [cursor[:-1], cursor[1:], cursor + "A", f"{cursor}.{cursor}", f".{cursor}", cursor.partition(".")[0]]
    for text in changed:
        answer = ask(http, name, text)
        assert (answer.status, answer.fields) == (400, ["cursor"])


@pytest.mark.parametrize("name", ["all", "runs"])
@pytest.mark.parametrize(
    "text",
    ["", " ", "null", "2026-11-30T12:00:00Z", "W10.x", "é", "a" * 4000, ".", "..", "eyJhIjoxfQ==", "\x00"],
)
def test_a_text_that_never_was_a_cursor(http: Http, given_out: dict[str, str], name: str, text: str) -> None:
    """Among them, what 0.1.0 gave as the cursor of runs."""
    answer = ask(http, name, text)
    assert (answer.status, answer.fields) == (400, ["cursor"])


SEALED = st.text("ABCabc019._-", max_size=80) | st.text(max_size=20)


@given(text=SEALED)
@example(text=".eJw")
@example(text="\ud800")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_text_is_given(text: str) -> None:
    with pytest.raises(InputError, match="cursor"):
        Cursors(lambda: "secret", ["jobs"]).open(text)


def test_a_cursor_of_another_format_is_refused(
    http: Http, given_out: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    for name, cursor in given_out.items():
        assert ask(http, name, cursor).fields == ["cursor"]


POSITIONS: list[Any] = [
    *[(), (1,), ("x",), ("x", "y", "z"), (None,), (99, "x"), (-1, "x"), ({},), (1.5, "x")],
    *[("x", 0, "", ""), ("x", "y", "", ""), ("2026-11-30T12:00:00", 0, "x", "j"), ("2026-11-30T12:00:00",)],
]


@pytest.mark.parametrize("name", [*LISTS, "runs"])
def test_a_signed_cursor_with_another_position_is_refused_too(
    http: Http, given_out: dict[str, str], world: World, name: str
) -> None:
    """As if positions had changed their form, and FORMAT had been forgotten."""
    bound_to: list[object] = ["runs", "dead-0"]
    if name != "runs":
        query = read_list_query(
            {key: [value] if isinstance(value, str) else value for key, value in LISTS[name].items()}
        )
        bound_to = ["jobs", plan_list(query).kind, *query.canonical]
    cursors = Cursors(world.api.cursor_secret.get, bound_to)
    assert cursors.open(given_out[name])
    good = {"group": [("x",), ("2026-11-30T12:00:00",)], "runs": []}.get(name, [])
    for position in POSITIONS:
        if position not in good:
            answer = ask(http, name, cursors.seal(position) or "")
            assert (answer.status, answer.fields) == (400, ["cursor"]), position


@pytest.mark.backends("moto", "memory")
def test_the_secret_is_the_deployments(world: World, aws: Aws) -> None:
    first = world.api.cursor_secret.get()
    assert len(first) == 64
    assert World(aws, world.clock).api.cursor_secret.get() == first
    (item,) = (item for item in world.items("cursor_key") if item[keys.PK] == {"S": "stack"})
    assert item["secret"] == {"S": first}
    assert keys.TTL_ATTRIBUTE not in item


@pytest.mark.backends("moto", "memory")
def test_two_that_make_the_secret_at_once_use_the_same(aws: Aws, clock: ManualClock) -> None:
    table = Table(aws.dynamodb, aws.table)
    made = iter(["mine", "theirs"])
    ours = CursorSecret(table, lambda: next(made))
    theirs = CursorSecret(table, lambda: "theirs")

    class Between(calls.Observer):
        def on_request(self, call: calls.Call) -> None:
            if call.name == "dynamodb:PutItem" and call.asked["Item"][keys.SK] == {"S": "cursor_key"}:
                with calls.unseen():
                    theirs.get()

    with calls.observing(Between()):
        assert ours.get() == "theirs"
    assert (ours.get(), theirs.get()) == ("theirs", "theirs")


@pytest.mark.backends("moto", "memory")
def test_the_secret_is_read_once_and_only_for_a_cursor(http: Http, world: World) -> None:
    for number in range(3):
        world.submit(job_id=f"j{number}", every="1h")
    with faults.logging() as log:
        assert http.get("/v1/jobs").document["cursor"] is None
        assert log.of("dynamodb:GetItem") == []
        cursor = http.get("/v1/jobs", limit="1").document["cursor"]
        http.get("/v1/jobs", limit="1", cursor=cursor)
    assert len(log.of("dynamodb:GetItem")) == 1
    assert len(log.of("dynamodb:PutItem")) == 1


def test_a_cursor_does_not_tell_the_secret_nor_expire(http: Http, given_out: dict[str, str], world: World) -> None:
    world.clock.advance(86_400 * 40)
    for name, cursor in given_out.items():
        assert world.api.cursor_secret.get() not in cursor
        assert ask(http, name, cursor).status == 200


@pytest.mark.parametrize("limit", ["1", "3", "100"])
def test_the_runs_of_a_job_page_by_page(http: Http, world: World, limit: str) -> None:
    world.submit(job_id="j", every="1s", max_runs=7)
    world.clock.advance(7)
    world.deliver()
    found, query = [], {"limit": limit}
    while True:
        page = http.get("/v1/jobs/j/runs", **query).document
        found += [run["scheduled_for"] for run in page["runs"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert found == [f"2026-11-30T11:58:0{second}Z" for second in range(7, 0, -1)]
