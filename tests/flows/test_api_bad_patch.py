"""Bad input to PATCH: 4xx with the field named, and the job as it was; never a 500, and nothing stored by half."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.flows.test_api_bad_input import BROKEN, ECHO, WRONG, WRONG_INSIDE, bodies, json_values, nearly_right
from tests.support.aws import Aws, all_items
from tests.support.clocks import ManualClock
from tests.support.http import Answer, Http
from tests.support.world import World

ONE_OFF = {"run_at": "2026-12-24T12:00:00Z"}
JOBS: dict[str, dict[str, Any]] = {
    "cron": {"cron": "0 9 * * *", "timezone": "Europe/Berlin", "max_runs": 5, "retry": {"factor": 1.5}},
    "every": {"every": "1h", "jitter_s": 60, "tags": {"team": "a"}, "payload": {"a": 1}, "deadline_s": 10},
    "one-off": ONE_OFF,
}
OWN = {"cron": "cron", "every": "every"}  # where a wrong value of a schedule's kind is tried
FIXED = ("job_id", "depends_on", "on_parent_failure")


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    made = Http(monkeypatch, world.api)
    for job_id, body in JOBS.items():
        assert made.post("/v1/jobs", {"job_id": job_id, "target": ECHO, **body}).status == 201
    return made


def patch(http: Http, job_id: str, body: Any) -> Answer:
    return http.call("PATCH", f"/v1/jobs/{job_id}", body)


def single_faults() -> Iterator[tuple[str, str, Any]]:
    """A job, the path of the one wrong field, and the change with it. A null is right: it means the default."""
    for name, values in WRONG.items():
        job_id = OWN.get(name, "one-off" if name == "run_at" else "cron")
        for value in values:
            if value is not None or name in ("target", "nonsense", *FIXED):
                yield job_id, name, {name: value}
    for path, values in WRONG_INSIDE.items():
        outer, inner = path.split(".")
        inside: dict[str, Any] = dict(ECHO) if outer == "target" else {}
        for value in values:
            if value is not None or outer == "target":
                yield "every", path, {outer: {**inside, inner: value}}
    yield "cron", "retry.attempts", {"retry": {"attempts": None}}
    yield "cron", "body", {}
    yield "cron", "depends_on", {"depends_on": []}
    yield "every", "target.handler", {"target": {"kind": "python"}}
    yield "every", "every", {"run_at": ONE_OFF["run_at"], "every": "5m"}
    yield "every", "run_at", {"every": None}
    yield "one-off", "max_runs", {"max_runs": 2}
    yield "one-off", "jitter_s", {"jitter_s": 2}
    yield "cron", "end_at", {"end_at": "2026-11-30T11:00:00Z"}
    yield "every", "jitter_s", {"every": "30s"}  # against what the job has
    yield "every", "end_at", {"start_at": "2027-01-02T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}


def test_each_wrong_field_is_named_and_nothing_is_changed(http: Http, aws: Aws) -> None:
    before = all_items(aws)
    wrong = []
    for job_id, field, body in single_faults():
        answer = patch(http, job_id, body)
        if answer.status != 400 or answer.fields != [field]:
            wrong.append((job_id, field, json.dumps(body)[:150], answer.status, answer.text[:300]))
    assert not wrong, "\n".join(map(str, wrong))
    assert all_items(aws) == before


def test_all_faults_of_a_change_are_listed(http: Http) -> None:
    answer = patch(
        http, "cron", {"retry": {"factor": 11, "x": 1}, "cron": "61 * * * *", "nonsense": None, "timeout_s": 0}
    )
    assert sorted(answer.fields) == ["cron", "nonsense", "retry.factor", "retry.x", "timeout_s"]


@pytest.mark.parametrize(("text", "field"), BROKEN, ids=range(len(BROKEN)))
def test_broken_json_is_refused(http: Http, aws: Aws, text: str | bytes, field: str) -> None:
    before = all_items(aws)
    answer = patch(http, "cron", text)
    assert (answer.status, answer.fields) == (400, [field])
    assert all_items(aws) == before


def test_the_payload_and_the_body_have_their_limits(http: Http, aws: Aws) -> None:
    before = all_items(aws)
    over = patch(http, "cron", {"payload": "x" * (262_144 - 1)})
    assert (over.status, over.fields) == (413, ["payload"])
    assert patch(http, "cron", '{"name":"x"}' + " " * 400_000).status == 413
    answer = http.call("PATCH", "/v1/jobs/cron", {"name": "x"}, headers={"content-type": "text/plain"})
    assert answer.status == 415
    assert all_items(aws) == before


FUZZ = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
NULLS = st.dictionaries(st.sampled_from(sorted(WRONG)), st.none(), max_size=3)


@pytest.mark.backends("memory")  # some hundred calls
@FUZZ
@given(job_id=st.sampled_from(sorted(JOBS)), body=bodies | nearly_right | json_values | NULLS)
def test_whatever_is_sent_is_answered_in_order_and_a_second_time_changes_nothing(
    http: Http, aws: Aws, job_id: str, body: Any
) -> None:
    before, shown = all_items(aws), http.get(f"/v1/jobs/{job_id}").document
    answer = patch(http, job_id, json.dumps(body))
    event(f"answered {answer.status}")
    assert answer.status in {200, 400, 409, 413}, answer.text
    if answer.status != 200:
        assert all_items(aws) == before
        return
    assert http.get(f"/v1/jobs/{job_id}").text == answer.text
    assert answer.document["version"] - shown["version"] in (0, 1)
    assert {**answer.document, "version": 0} != {**shown, "version": 0} or answer.document["version"] == shown[
        "version"
    ]
    again = patch(http, job_id, json.dumps(body))
    assert again.document == answer.document
