"""Bad input: each field with each wrong type, broken JSON, hostile sizes: 4xx, the field named, nothing stored."""

import json
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from functions.submit.request import MAX_BODY_BYTES
from tests.support.aws import Aws, all_items
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import World

JOB = {"target": ECHO, "every": "1h"}
RECURRING = {"target": ECHO, "cron": "0 9 * * *"}
OBJECT: dict[str, Any] = {"x": 1}


@pytest.fixture
def world(aws: Aws, clock: ManualClock) -> World:
    return World(aws, clock)


@pytest.fixture
def http(world: World, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, world.api)


NOT_TEXT: tuple[Any, ...] = (None, 5, 5.5, True, [], OBJECT)
NOT_WHOLE: tuple[Any, ...] = (None, "5", 5.5, 5.0, True, [], OBJECT)
NOT_NUMBER: tuple[Any, ...] = (None, "5", True, [], OBJECT)
NOT_OBJECT: tuple[Any, ...] = (None, "x", 5, True, [])
LONG = "x" * 300
CONTROL = "a\u0000b"
NOT_LIST = (None, 5, True, "lost", {})
BAD_KINDS = (None, 5, True, [], "", "x" * 129, "7Error", "a b", "é", CONTROL, "lost\n", "a-b")

# field → values that are wrong for it
WRONG: dict[str, tuple[Any, ...]] = {
    "job_id": (*NOT_TEXT, "", "a b", "../x", "-a", "é", "a#b", "a/b", "a\n", "x" * 129),
    "name": (*NOT_TEXT, "", LONG, CONTROL, "a\nb", "\x9b"),
    "group": (*NOT_TEXT, "", "a b", "x" * 129),
    "tags": (*NOT_OBJECT, {f"t{n}": "" for n in range(21)}),
    "target": NOT_OBJECT,
    "cron": (*NOT_TEXT, "", "* * *", "@reboot", "60 * * * *", "0 0 30 2 *", "* " * 5000, "R * * * *", "1,* * * * *"),
    "every": (*NOT_TEXT, "", "0s", "5", "-5m", "1 fortnight", "PT", "500ms", "9" * 60 + "s"),
    "run_at": (
        *NOT_TEXT,
        "",
        "now",
        "2026-07-01T12:00:00",  # C27: no offset and no zone
        "2016-12-31T23:59:60Z",  # C28
        "2027-01-01T24:00:00Z",
        "2027-02-29T00:00:00Z",
        "2027-01-01T00:00:00+24:00",
        "2026-W53-4",
        "2027-01-01",
        "2027-01-01T00:00:00,5Z",
        "2027-01-01T00:00:00.1234567Z",
        "9999-12-31T23:59:59-23:59",
        "9999-12-31T23:59:59Z",  # C29
        "2040-01-01T00:00:00Z",
        "1798711200",
        "1798711200000",
        1798711200000,
    ),
    "timezone": (  # C26
        *NOT_TEXT,
        "",
        "Mars/Phobos",
        "America",
        "US",
        "../../etc/passwd",
        "/etc/passwd",
        LONG,
        "Europe/London\u0000",
        "leapseconds",
        "GMT+5",
        "utc",
        "localtime",
        "posixrules",
        "Factory",
    ),
    "start_at": (*NOT_TEXT, "", "soon", "9999-12-31T23:59:59Z"),
    "end_at": (*NOT_TEXT, "", "soon", "2020-01-01T00:00:00Z"),
    "max_runs": (*NOT_WHOLE, 0, -1, 10**30),
    "jitter_s": (*NOT_WHOLE, -1, 10**30),
    "catch_up": (*NOT_TEXT, "", "none", "LATEST"),
    "deadline_s": (*NOT_WHOLE, 0, -1, 10**30),
    "dst_gap": (*NOT_TEXT, "both"),
    "retry": NOT_OBJECT,
    "timeout_s": (*NOT_WHOLE, 0, -1, 106, 10**30, 10**4000),
    "overlap": (*NOT_TEXT, "none", "SKIP", ""),
    "priority": (*NOT_TEXT, "HIGH", "urgent", ""),
    "depends_on": (*NOT_LIST, ["a"] * 21),
    "on_parent_failure": (*NOT_TEXT, "fail", ""),
    "nonsense": (None, 1),
    "runs": ([],),
    "status": ("scheduled",),
}
# path → wrong values, for fields inside of others
WRONG_INSIDE: dict[str, tuple[Any, ...]] = {
    "retry.max_attempts": (*NOT_WHOLE, 0, -1, 101),  # C40
    "retry.base_s": (*NOT_NUMBER, -1, 604_801, 10**400),
    "retry.factor": (*NOT_NUMBER, 0, 0.99, 10.01),
    "retry.max_s": (*NOT_NUMBER, -1, 604_801, -(10**400)),
    "retry.retry_on": (*NOT_LIST, ["TimeoutError"] * 21),
    "retry.give_up_on": (*NOT_LIST, ["TimeoutError"] * 21),
    "retry.attempts": (3,),
    "target.handler": (*NOT_TEXT, "", "demo.nothing", "demo.echo "),
    "target.kind": (*NOT_TEXT, "", "lambda", "http", "Python"),
    "target.url": ("https://example.com",),
    "tags.team": (*NOT_TEXT, "x" * 257, CONTROL),
}


def single_faults() -> Iterator[tuple[str, dict[str, Any]]]:
    """The path of each wrong field, and a body that is right but for it."""
    for name, values in WRONG.items():
        base = {"target": ECHO} if name in {"cron", "every", "run_at"} else RECURRING
        for value in values:
            yield name, {**base, name: value}
    for path, values in WRONG_INSIDE.items():
        outer, inner = path.split(".")
        inside: dict[str, Any] = {"target": ECHO, "retry": {}, "tags": {}}[outer]
        for value in values:
            yield path, {**JOB, outer: {**inside, inner: value}}
    for name, value in product(("retry_on", "give_up_on"), BAD_KINDS):
        yield f"retry.{name}[1]", {**JOB, "retry": {name: ["lost", value]}}
    yield "retry.give_up_on", {**JOB, "retry": {"retry_on": ["lost", "a.B"], "give_up_on": ["KeyError", "a.B"]}}
    for value in (None, 5, [], "", "x" * 129, "-a", "a b", CONTROL):
        yield "depends_on[1]", {"target": ECHO, "depends_on": ["a", value]}
    yield "depends_on[1]", {"target": ECHO, "depends_on": ["a", "a"]}
    yield "depends_on[0]", {"target": ECHO, "job_id": "a", "depends_on": ["a"]}
    yield "depends_on[0]", {"target": ECHO, "depends_on": ["nobody"]}
    yield "every", {**JOB, "depends_on": ["a"]}
    yield "cron", {"target": ECHO, "cron": "* * * * *", "depends_on": ["a"]}
    yield "run_at", {"target": ECHO, "depends_on": []}
    yield "target", {"every": "1h"}
    yield "target.handler", {"every": "1h", "target": {"kind": "python"}}
    yield "target.kind", {"every": "1h", "target": {"handler": "demo.echo"}}
    yield 'tags[""]', {**JOB, "tags": {"": "x"}}
    yield f'tags["{LONG[:60]}…" (300 characters)]', {**JOB, "tags": {LONG: "x"}}
    yield 'tags["a\\u0000b"]', {**JOB, "tags": {CONTROL: "x"}}
    yield "run_at", {"target": ECHO}
    yield "every", {**JOB, "cron": "* * * * *"}
    yield "every", {**JOB, "run_at": "2027-01-01T00:00:00Z"}
    yield "max_runs", {"target": ECHO, "run_at": "2027-01-01T00:00:00Z", "max_runs": 2}


def test_each_wrong_field_is_named_and_nothing_is_stored(http: Http, aws: Aws) -> None:
    wrong = []
    for field, body in single_faults():
        # json.dumps writes 10**400 out in full; the API must not stumble over it.
        answer = http.post("/v1/jobs", body)
        if answer.status != 400 or answer.fields != [field]:
            wrong.append((field, json.dumps(body)[:150], answer.status, answer.text[:300]))
    assert not wrong, "\n".join(map(str, wrong))
    assert all_items(aws) == []


def test_messages_are_in_plain_words_with_the_value(http: Http) -> None:
    for field, body in single_faults():
        for error in http.post("/v1/jobs", body).document["errors"]:
            message = error["message"]
            assert len(message) < 400, (field, message)
            for jargon in (
                "Input",
                "valid integer",
                "dict",
                "NoneType",
                "Decimal",
                "None",
                "True",
                "class ",
                "str ",
                "else",
            ):
                assert jargon not in message, (field, message)


def test_all_faults_of_a_body_are_listed_in_its_own_order(http: Http, aws: Aws) -> None:
    body = {
        "timeout_s": 0,
        "retry": {"factor": 11, "max_attempts": 0, "x": 1},
        "cron": "61 * * * *",
        "nonsense": 1,
        "tags": {"b": 1, "a": 2},
        "job_id": "",
    }
    answer = http.post("/v1/jobs", body)
    assert answer.status == 400
    assert answer.fields == [
        "timeout_s",
        "retry.factor",
        "retry.max_attempts",
        "retry.x",
        "cron",
        "nonsense",
        "tags.b",
        "tags.a",
        "job_id",
        "target",
    ]
    assert answer.document["errors"][0]["message"] == "must be at least 1, not 0"
    assert answer.document["detail"].startswith("timeout_s: must be at least 1, not 0; retry.factor: ")
    assert all_items(aws) == []


def test_a_body_of_wrong_fields_only_is_answered_in_bounded_time_and_length(http: Http) -> None:
    nonsense = {f"{n}": [] for n in range(20_000)}
    for body in (nonsense, {**JOB, "retry": nonsense}, {**JOB, "tags": nonsense}, {**JOB, "target": nonsense}):
        started = time.process_time()
        answer = http.post("/v1/jobs", body)
        assert time.process_time() - started < 3
        assert (answer.status, len(answer.text) < 50_000) == (400, True)


BROKEN = [  # C67
    ("", "body"),
    (" \n", "body"),
    ("null", "body"),
    ("[]", "body"),
    ('"text"', "body"),
    ("{", "body"),
    ("{} {}", "body"),
    ('{"every":"1h"} trailing', "body"),
    ('{"every":"1h",}', "body"),
    ("{'every':'1h'}", "body"),
    ('\ufeff{"every":"1h"}', "body"),
    (b"\xef\xbb\xbf{}", "body"),
    (b'{"name":"\xff"}', "body"),
    (b"\x00\x01", "body"),
    ('{"max_runs":NaN}', "max_runs"),
    ('{"payload":[1,{"a":Infinity}]}', "payload[1].a"),
    ('{"payload":-Infinity}', "payload"),
    ('{"payload":{"n":1e400}}', "payload.n"),
    ('{"payload":-1e400}', "payload"),
    ('{"payload":1e99999999999999999999}', "payload"),
    ('{"run_at":"2027-01-01T00:00:00Z","run_at":"2028-01-01T00:00:00Z"}', "run_at"),
    ('{"payload":{"a":[{"k":1,"k":1}]}}', "payload.a[0].k"),
    ('{"name":"\\ud800"}', "name"),
    ('{"payload":{"\\udfff":1}}', 'payload["\\udfff"]'),
    ('{"max_runs":' + "9" * 5000 + "}", "max_runs"),
    ('{"payload":0.' + "1" * 5000 + "}", "payload"),
    ('{"payload":' + "[" * 100_000 + "]" * 100_000 + "}", "body"),
    ('{"payload":' + '{"a":' * 50_000, "body"),
    ('{"payload":"' + '\\"' * 100_000, "body"),
    ('{"name":"a\tb"}', "body"),
    ('{"max_runs":01}', "body"),
]


@pytest.mark.parametrize(("text", "field"), BROKEN, ids=range(len(BROKEN)))
def test_c67_broken_json_is_refused(http: Http, aws: Aws, text: str | bytes, field: str) -> None:
    for path in ("/v1/jobs", "/v1/preview"):
        answer = http.post(path, text)
        assert (answer.status, answer.fields) == (400, [field])
    assert all_items(aws) == []


def test_a_body_that_is_said_to_be_base64_but_is_not(http: Http) -> None:
    from functions.submit import handler as function
    from tests.support.http import LambdaContext, http_api_event

    for text in ("!!", "a", "eyJ9=", "é"):
        event = {**http_api_event("POST", "/v1/jobs", text), "isBase64Encoded": True}
        answer = function.handler(event, LambdaContext())
        assert (answer["statusCode"], json.loads(answer["body"])["errors"][0]["field"]) == (400, "body")


def test_base64_is_what_the_gateway_makes_of_bytes(http: Http) -> None:
    body = json.dumps({**JOB, "name": "Käse"}, ensure_ascii=False).encode()
    assert http.post("/v1/jobs", body).document["name"] == "Käse"


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ('Application/JSON;charset="UTF-8"', 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=latin-1", 415),
        ("application/jsonp", 415),
        ("", 415),
        ("multipart/form-data; boundary=x", 415),
    ],
)
def test_only_json_is_taken(http: Http, content_type: str, status: int) -> None:
    assert http.post("/v1/jobs", JOB, headers={"content-type": content_type}).status == status


def test_the_payload_has_a_limit_in_bytes(http: Http, aws: Aws) -> None:
    """C55: at the limit it is taken, one byte over it is refused; the limit is on the payload's UTF-8."""
    at_limit = "x" * (262_144 - 2)
    assert http.post("/v1/jobs", {**JOB, "job_id": "big", "payload": at_limit}).status == 201
    assert http.get("/v1/jobs/big").document["payload"] == at_limit
    stored = len(all_items(aws))
    over = http.post("/v1/jobs", {**JOB, "payload": at_limit + "x"})
    assert (over.status, over.fields) == (413, ["payload"])
    assert "262,145" in over.document["detail"]
    # 100,000 characters of three bytes each, whether written out or escaped.
    for ensure_ascii in (False, True):
        text = json.dumps({**JOB, "payload": "€" * 100_000}, ensure_ascii=ensure_ascii)
        assert http.post("/v1/jobs", text).status == 413
    # White space inside of it does not count.
    assert http.post("/v1/jobs", json.dumps({**JOB, "payload": [1] * 60_000}, indent=1)).status == 201
    assert len(all_items(aws)) > stored


def test_the_body_has_a_limit_of_its_own(http: Http, aws: Aws) -> None:
    text = json.dumps(JOB)
    padded = text + " " * (MAX_BODY_BYTES - len(text))
    assert http.post("/v1/preview", '{"every":"1h"}' + " " * (MAX_BODY_BYTES - 14)).status == 200
    assert http.post("/v1/jobs", padded).status == 201
    over = http.post("/v1/jobs", padded + " ")
    assert (over.status, over.fields) == (413, ["body"])
    assert len(all_items(aws)) == 1


@pytest.mark.parametrize(
    "number",
    [
        "0.1",
        "30.40",
        "1.0",
        "-0.0",
        "9007199254740993",
        "1" + "0" * 38,
        "1" * 41,
        "true",
        "1",
        "1.10E+2",
        "1e5",
        "5e-324",
    ],
)
def test_numbers_of_the_payload_keep_their_digits(http: Http, number: str) -> None:
    """C56."""
    target = '"target":{"kind":"python","handler":"demo.echo"}'
    made = http.post("/v1/jobs", f'{{{target},"job_id":"n","every":"1h","payload":[{number}]}}')
    assert made.status == 201
    shown = http.get("/v1/jobs/n").text
    kept = shown.split('"payload":[')[1].split("]")[0]
    assert kept == number


@pytest.mark.parametrize("host", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_times_never_depend_on_the_zone_of_the_host(http: Http, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """C26, C27."""
    monkeypatch.setenv("TZ", host)
    time.tzset()
    try:
        local = {"target": ECHO, "run_at": "2027-07-01T12:00:00", "timezone": "Europe/London"}
        assert http.post("/v1/jobs", local).document["run_at"] == "2027-07-01T11:00:00Z"
        zoned = {"target": ECHO, "run_at": "2027-07-01T12:00:00+05:30"}
        assert http.post("/v1/jobs", zoned).document["run_at"] == "2027-07-01T06:30:00Z"
        fixed = {"target": ECHO, "cron": "0 9 * * *", "timezone": "Etc/GMT+5"}
        assert http.post("/v1/jobs", fixed).document["next_run_at"] == "2026-11-30T14:00:00Z"
        for twice_or_never in ("2027-03-28T01:30:00", "2027-10-31T01:30:00"):
            assert http.post("/v1/jobs", {**local, "run_at": twice_or_never}).fields == ["run_at"]
    finally:
        monkeypatch.undo()
        time.tzset()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True, allow_infinity=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
plausible = {
    "job_id": st.sampled_from(["a", "b:c", "é", ""]),
    "name": st.text(max_size=140),
    "group": st.text(alphabet="ab-:. ", max_size=10),
    "tags": st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=25),
    "target": st.sampled_from([ECHO, ECHO, {"kind": "http"}, {}]),
    "payload": json_values,
    "run_at": st.sampled_from(["2026-11-30T11:58:00Z", "0001-01-01T00:00:00Z", "2027-03-14T02:30:00", "x"]),
    "cron": st.text(alphabet="0123456789*/,-LW#?HMON @", max_size=14) | st.just("*/5 * * * *"),
    "every": st.text(alphabet="0123456789smhdPT", max_size=6) | st.just("5m"),
    "timezone": st.sampled_from(["UTC", "America/New_York", "Etc/GMT+5", "posix/UTC", ""]),
    "start_at": st.sampled_from(["2026-12-01T00:00:00Z", "9999-01-01T00:00:00Z"]),
    "end_at": st.sampled_from(["2026-12-02T00:00:00Z", "2036-12-02T00:00:00Z"]),
    "max_runs": st.integers(-1, 3),
    "jitter_s": st.integers(-1, 100_000),
    "deadline_s": st.integers(0, 10),
    "retry": st.dictionaries(
        st.sampled_from(["max_attempts", "base_s", "factor", "max_s", "retry_on", "give_up_on"]),
        st.integers() | st.floats(0, 10) | st.lists(st.sampled_from(["lost", "KeyError", "a.B", "-"]), max_size=3),
        max_size=4,
    ),
    "timeout_s": st.integers(-1, 110),
}
bodies = st.fixed_dictionaries({}, optional={name: kind | json_values for name, kind in plausible.items()})
schedules = st.sampled_from(
    [{"every": "90s"}, {"cron": "H/7 2-4 * * MON#2", "timezone": "Europe/Berlin"}, {"run_at": "2026-11-30T11:58:00Z"}]
)
no_schedule = {
    name: kind
    for name, kind in plausible.items()
    if name not in {"run_at", "cron", "every", "timezone", "start_at", "end_at", "max_runs", "jitter_s"}
}
nearly_right = st.builds(
    lambda schedule, more: {**more, **schedule, "target": ECHO},
    schedules,
    st.dictionaries(st.sampled_from(sorted(no_schedule)), st.none(), max_size=2).flatmap(
        lambda names: st.fixed_dictionaries({name: no_schedule[name] for name in names})
    ),
)
FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@FUZZ
@given(body=bodies | nearly_right | json_values)
def test_whatever_is_sent_is_answered_in_order(http: Http, body: Any) -> None:
    answer = http.post("/v1/jobs", body if not isinstance(body, str) else json.dumps(body))
    event(f"answered {answer.status}")
    assert answer.status in {201, 400, 409, 413}, answer.text
    if answer.status == 201:
        assert http.get(answer.headers["location"]).text == answer.text
    assert http.post("/v1/preview", json.dumps(body)).status in {200, 400}


@FUZZ
@given(
    text=st.text(max_size=60) | st.binary(max_size=60) | st.text(alphabet='{}[]",:0123e.-\\ nulltruefas', max_size=40)
)
def test_whatever_text_is_sent_is_refused_in_order(http: Http, text: str | bytes) -> None:
    answer = http.post("/v1/jobs", text)
    assert (answer.status, bool(answer.fields)) == (400, True)
