"""A job as people see it, also in a narrow terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from duetime.cli.render import job_table, preview_list, runs_list
from duetime.client import JsonValue

HOSTILE = "\x1b[2J\x9b31m\u202e\u2066\u200b[red]:smile:\n"
JOB: dict[str, Any] = {
    "job_id": "j1",
    "name": "n",
    "status": "dead_lettered",
    "target": {"kind": "python", "handler": "demo.fail"},
    "payload": "a text",
    "run_at": "2026-11-29T12:00:05Z",
    "timezone": "UTC",
    "retry": {"max_attempts": 3},
    "timeout_s": 60,
    "runs": [],
}


def attempt(number: int, started_at: str, outcome: str | None, error: str | None = None) -> dict[str, JsonValue]:
    finished = None if outcome is None else started_at.replace("Z", "5Z")
    return {
        "attempt": number,
        "started_at": started_at,
        "finished_at": finished,
        "outcome": outcome,
        "error": error,
    }


def run(status: str, *attempts: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = {"scheduled_for": "2026-11-29T12:00:05Z", "status": status, "attempts": [*attempts]}
    return plain | more


def printed(show: Any, document: dict[str, Any], width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, emoji=False)
    show(console, document)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_dead_lettered_job_shows_each_attempt_and_its_error_whole(width: int) -> None:
    error = "RuntimeError: " + "why " * 20 + "end"
    attempts = [attempt(n, f"2026-11-29T12:00:{n}5.310Z", "failed", error) for n in (1, 2, 3)]
    lines = printed(job_table, JOB | {"runs": [run("dead_lettered", *attempts)]}, width)
    assert "2026-11-29 12:00:05Z  dead_lettered  10.31 s late" in lines
    assert [line for line in lines if "failed   " in line and "took" in line] == [
        f"  attempt {n}  12:00:{n}5.310  failed     took 0.00 s" for n in (1, 2, 3)
    ]
    assert " ".join(" ".join(lines).split()).count(error) == 3
    assert max(map(len, lines)) <= width


def test_a_run_shows_its_progress_and_what_a_cancelled_one_returned() -> None:
    first = attempt(1, "2026-11-29T12:00:05.310Z", "cancelled")
    lines = printed(job_table, JOB | {"runs": [run("cancelled", first, progress={"rows": "7"}, result=[1])]})
    assert lines[-3:] == [
        '  progress: {"rows": "7"}',
        "  attempt 1  12:00:05.310  cancelled  took 0.00 s",
        "             [1]",
    ]


@pytest.mark.parametrize("width", [60, 80])
def test_runs_of_a_series_can_be_told_apart_and_have_their_results(width: int) -> None:
    runs = [
        run("running", attempt(1, "2026-11-29T12:02:05.2Z", None), scheduled_for="2026-11-29T12:02:05Z"),
        run("succeeded", attempt(1, "2026-11-29T12:01:05.1Z", "succeeded"), result={"n": 1}),
        run("skipped", reason="catch-up", missed=7, missed_until="2026-11-29T11:00:00Z"),
    ]
    lines = printed(runs_list, {"runs": runs}, width)
    assert lines == [
        "2026-11-29 12:02:05Z  running        0.20 s late",
        "  attempt 1  12:02:05.200  running",
        "2026-11-29 12:00:05Z  succeeded      60.10 s late",
        "  attempt 1  12:01:05.100  succeeded  took 0.05 s",
        '             {"n": 1}',
        "2026-11-29 12:00:05Z  skipped",
        "  reason: catch-up, 7 occurrences until 2026-11-29 11:00:00Z",
    ]


def test_an_attempt_that_another_has_taken_over_is_not_shown_as_running() -> None:
    attempts = [attempt(1, "2026-11-29T12:00:05.1Z", None), attempt(2, "2026-11-29T12:01:10.1Z", None)]
    lines = printed(runs_list, {"runs": [run("running", *attempts)]}, 60)
    assert lines[1:] == ["  attempt 1  12:00:05.100  lost", "  attempt 2  12:01:10.100  running"]


def test_what_started_on_another_day_has_its_date_and_a_lateness_one_can_read() -> None:
    late = run("succeeded", attempt(1, "2026-11-29T12:00:05.1Z", "succeeded"), scheduled_for="2020-01-02T03:04:05.5Z")
    assert printed(runs_list, {"runs": [late]}, 60) == [
        "2020-01-02 03:04:05.500000Z  succeeded      6.9 y late",
        "  attempt 1  2026-11-29 12:00:05.100  succeeded  took 0.05 s",
    ]


def test_nothing_of_the_users_reaches_the_terminal_raw() -> None:
    runs = [
        run("succeeded", attempt(1, "2026-11-29T12:00:05.1Z", "succeeded"), result=HOSTILE, reason=HOSTILE),
        run(HOSTILE, attempt(1, HOSTILE, HOSTILE, HOSTILE), scheduled_for=HOSTILE),
    ]
    hostile = JOB | dict.fromkeys(("job_id", "name", "group", "payload", "status", "cron", "run_at"), HOSTILE)
    lines = printed(job_table, hostile | {"runs": runs}, 200)
    times = [{"local": HOSTILE, "utc": HOSTILE, "note": HOSTILE}]
    lines += printed(preview_list, {"timezone": HOSTILE, "times": times}, 200)
    text = "".join(lines)
    assert text.isprintable()
    assert "\\x1b[2J\\x9b31m\\u202e\\u2066\\u200b[red]:smile:\\n" in text


def test_a_payload_that_is_a_text_has_its_quotes_and_a_name_has_none() -> None:
    lines = printed(job_table, JOB)
    assert 'payload   "a text"' in lines
    assert "name      n" in lines


def test_a_preview_fits_into_a_narrow_terminal() -> None:
    note = "02:30 does not exist on this day; runs at 03:00 -04:00, as the schedule says"
    times = [{"local": "2027-03-14T03:00:00-04:00", "utc": "2027-03-14T07:00:00Z", "note": note}]
    lines = printed(preview_list, {"timezone": "America/New_York", "times": times}, 60)
    assert lines[1] == "2027-03-14T03:00:00-04:00      2027-03-14T07:00:00Z"
    assert " ".join(" ".join(lines[2:]).split()) == note
    assert printed(preview_list, {"times": []}) == ["this schedule never fires again"]
