"""`duetime list` and the client's lists against a scripted API: what they ask, and that they go on by themselves."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from rich.console import Console

from duetime.cli import jobs, lists, reading
from duetime.client import Client, JobQuery
from tests.support.scripted_server import Answer, ScriptedServer
from tests.unit import test_cli_commands as commands
from tests.unit.test_cli_commands import JOB, PROBLEM, Run, api

run = commands.run
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def row(job_id: str, **more: Any) -> dict[str, Any]:
    kept = {key: value for key, value in JOB.items() if key not in ("payload", "runs")}
    return {**kept, "job_id": job_id, "group": None, "tags": {}, **more}


def page(*rows: dict[str, Any], cursor: str | None = None) -> Answer:
    return Answer.of({"jobs": rows, "cursor": cursor})


def asked(server: ScriptedServer) -> list[list[tuple[str, str]]]:
    """The query of each request."""
    return [parse_qsl(urlsplit(one.target).query, keep_blank_values=True) for one in server.asked]


def test_all_pages_are_shown_also_behind_empty_ones(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [page(row("a"), cursor="c1"), page(cursor="c2"), page(cursor="c3"), page(row("b"))]
    with api(monkeypatch, *pages) as server:
        code, out, err = run("list")
    assert (code, err) == (0, "")
    assert [line.split()[-1] for line in out.splitlines()] == ["a", "b"]
    assert asked(server) == [
        [("limit", "100")],
        [("limit", "99"), ("cursor", "c1")],
        [("limit", "99"), ("cursor", "c2")],
        [("limit", "99"), ("cursor", "c3")],
    ]


def test_what_is_asked_for_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--status", "scheduled", "--group", "g", "--tag", "a:b&c", "--tag", "é", "--limit", "7"]
    options += ["--from", "2026-11-30T12:00:00+01:00", "--to", "2026-11-30T14:00:00Z", "--cursor", "x=y"]
    with api(monkeypatch, page()) as server:
        code, out, _ = run("list", *options)
    assert (code, out) == (0, "no jobs\n")
    assert asked(server) == [
        [
            ("status", "scheduled"),
            ("group", "g"),
            ("tag", "a:b&c"),
            ("tag", "é"),
            ("from", "2026-11-30T12:00:00+01:00"),
            ("to", "2026-11-30T14:00:00Z"),
            ("limit", "7"),
            ("cursor", "x=y"),
        ]
    ]
    assert "%2B01:00" in server.asked[0].target.replace("%3A", ":")


def test_no_more_than_wanted_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(f"j{number}") for number in range(250)]
    pages = [page(*rows[:100], cursor="c1"), page(*rows[100:200], cursor="c2"), page(*rows[200:], cursor="c3")]
    with api(monkeypatch, *pages) as server:
        code, out, err = run("list", "--limit", "250", "--tag", "a b", "--from", "2026-11-30T12:00:00Z")
    assert (code, len(out.splitlines())) == (0, 250)
    assert [dict(one)["limit"] for one in asked(server)] == ["100", "100", "50"]
    assert err == "more: duetime list --tag 'a b' --from 2026-11-30T12:00:00Z --cursor c3\n"


def test_a_row_says_what_people_look_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = row("daily", name="Report\x1b[2J", group="reports", tags={"team": "blue", "[red]x": ""})
    used_up = row("once", status="succeeded", next_run_at=None)
    monkeypatch.setattr(jobs, "out", Console(width=160, emoji=False))
    with api(monkeypatch, page(said, used_up)):
        _, out, _ = run("list")
    assert [line.rstrip() for line in out.splitlines()] == [
        "scheduled      2099-01-01 00:00:00Z  daily",
        " " * 37 + "Report\\x1b[2J, group reports, team=blue, [red]x=",
        "succeeded                            once",
    ]


def test_json_is_one_document_with_every_digit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = '{"jobs":[{"job_id":"a","retry":{"base_s":0.10,"factor":1e1}}],"cursor":"c1"}'
    second = '{"jobs":[{"job_id":"b","name":"\\u00e9"}],"cursor":null}'
    with api(monkeypatch, Answer(body=first.encode()), Answer(body=second.encode())):
        code, out, err = run("list", "--json")
    assert (code, err) == (0, "")
    assert [job["job_id"] for job in json.loads(out)["jobs"]] == ["a", "b"]
    assert json.loads(out)["cursor"] is None
    assert '"base_s": 0.10' in out
    with api(monkeypatch, page(row("a"), cursor="c1")):
        _, out, err = run("list", "--json", "--limit", "1")
    assert (json.loads(out)["cursor"], err) == ("c1", "")


def test_a_refusal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with api(monkeypatch, Answer.of(PROBLEM, 400)):
        code, out, err = run("list", "--json", "--status", "done")
    assert code == 1
    assert json.loads(out) == PROBLEM
    assert "no cron expression" in err


@pytest.mark.parametrize("options", [["--limit", "0"], ["--limit", "x"], ["--from", "+soon"], ["--to", "-"]])
def test_what_cannot_be_read(run: Run, options: list[str]) -> None:
    code, _, err = run("list", *options)
    assert code == 2
    assert options[0] in err


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("now", "2026-11-30T12:00:00+00:00"),
        ("+2h", "2026-11-30T14:00:00+00:00"),
        ("-90s", "2026-11-30T11:58:30+00:00"),
        ("+PT1H", "2026-11-30T13:00:00+00:00"),
        ("2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("tomorrow", "tomorrow"),
    ],
)
def test_times_from_now_on(text: str, sent: str) -> None:
    assert reading.moment(text, "--from", NOON) == sent


def test_times_are_worked_out_once_for_all_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cursor belongs to its query, and that to the moment of the command."""
    with api(monkeypatch, page(row("a"), cursor="c1"), page(row("b"))) as server:
        run("list", "--from", "now", "--to", "+1h")
    first, second = (dict(one) for one in asked(server))
    assert (first["from"], first["to"]) == (second["from"], second["to"])


def test_the_client_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [page(row("a"), row("b"), cursor="c1"), page(cursor="c2"), page(row("c"))]
    with api(monkeypatch, *pages) as server, Client(server.url) as client:
        found = client.jobs(JobQuery(group="g", due_from=NOON))
        assert next(found)["job_id"] == "a"
        assert len(server.asked) == 1  # no page before it is wanted
        assert [job["job_id"] for job in found] == ["b", "c"]
    assert [dict(one).get("cursor") for one in asked(server)] == [None, "c1", "c2"]
    assert all(dict(one)["from"] == "2026-11-30T12:00:00+00:00" for one in asked(server))


def test_nothing_said_is_no_query() -> None:
    assert JobQuery().to_query() == ""
    assert lists._options(JobQuery()) == ""
