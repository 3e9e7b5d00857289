"""docs/fields.md, row by row: every field is there, its default is what a job shows, its error what is answered."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from functions.submit.models import JobBody
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.http import ECHO, Http
from tests.support.world import World

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| `(.+?)`.*? \| (.*) \|$")
ONCE = {"run_at": "2027-01-01T00:00:00Z"}
RECURRING = {"start_at", "end_at", "max_runs", "jitter_s"}


@dataclass(frozen=True)
class Row:
    """One line of a table: a field, its default, a value that is wrong, and what is said about it."""

    section: str
    field: str
    default: str
    wrong: str
    error: str


def rows() -> Iterator[Row]:
    section = ""
    for line in PAGE.splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if found := ROW.match(line):
            field, default, _, wrong, error = found.groups()
            yield Row(section, field, default.strip("`"), wrong.replace("\\|", "|"), error.replace("\\|", "|"))


ROWS = list(rows())
OF_A_JOB = [row for row in ROWS if row.section == "A job"]
ELSEWHERE = [row for row in ROWS if row.section != "A job"]


@pytest.fixture
def http(aws: Aws, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Http:
    return Http(monkeypatch, World(aws, clock).api)


def paths(schema: dict[str, Any], defs: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, field in schema["properties"].items():
        inner = defs.get(str(field.get("$ref", "")).rpartition("/")[2])
        if inner and "properties" in inner:
            yield from paths(inner, defs, f"{before}{name}.")
        else:
            yield before + name


def test_every_field_of_a_job_has_its_row() -> None:
    schema = JobBody.model_json_schema()
    assert sorted({row.field for row in OF_A_JOB}) == sorted(paths(schema, schema["$defs"]))


@pytest.mark.parametrize("row", OF_A_JOB, ids=lambda row: row.field)
def test_a_wrong_value_is_refused_by_its_field_in_these_words(http: Http, row: Row) -> None:
    body: dict[str, Any] = {"target": ECHO}
    if row.field not in ("run_at", "every", "cron"):
        body |= {"every": "1h"} if row.field in RECURRING else ONCE
    _put(body, row.field.split("."), "x" * 262_145 if row.field == "payload" else json.loads(row.wrong))
    answer = http.post("/v1/jobs", body)
    (error,) = answer.document["errors"]
    assert (answer.status, error["message"]) == (413 if row.field == "payload" else 400, row.error)
    assert error["field"].removeprefix(row.field)[:1] in ("", "[", ".")


@pytest.mark.parametrize("row", OF_A_JOB, ids=lambda row: row.field)
def test_the_default_is_what_a_job_shows(http: Http, row: Row) -> None:
    if row.default in ("", "needed", "made up", "one of the three is needed"):
        return
    schedule = {"every": "1h"} if row.field in RECURRING else ONCE
    shown: Any = http.post("/v1/jobs", {"target": ECHO, **schedule}).document
    for part in row.field.split("."):
        shown = shown[part]
    assert shown == json.loads(row.default)


@pytest.mark.parametrize("row", ELSEWHERE, ids=lambda row: f"{row.section}: {row.field}")
def test_other_calls_name_their_field_too(http: Http, row: Row) -> None:
    http.post("/v1/jobs", {"job_id": "a", "target": ECHO, **ONCE})
    method, path = row.section.strip("`").split(" ")
    path = path.format(group="g", job_id="a")
    wrong = json.loads(row.wrong)
    if row.field[0].isupper():
        body = {"name": "b"} if method == "PATCH" else {"target": ECHO, **ONCE}
        answer = http.call(method, path, body, headers={row.field.lower(): wrong})
    elif method == "GET":
        answer = http.get(path, **{row.field: wrong})
    else:
        answer = http.call(method, path, {row.field: wrong, **({"every": "1h"} if "preview" in path else {})})
    assert (answer.status, answer.document["errors"]) == (400, [{"field": row.field, "message": row.error}])


def _put(body: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        body[part] = dict(body.get(part, {}))
        body = body[part]
    body[path[-1]] = value
