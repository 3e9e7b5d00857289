"""Tables for people. It never decides anything and never prints JSON."""

import json
from datetime import datetime
from decimal import Decimal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from duetime.cli.progress import Step, attempts_of, lateness_s, moment, runs_of
from duetime.client import JsonValue

COLOURS = {
    "scheduled": "cyan",
    "enqueued": "blue",
    "running": "yellow",
    "failed": "magenta",
    "timed_out": "magenta",
    "lost": "magenta",
    "succeeded": "green",
    "completed": "green",
    "dead_lettered": "red",
    "cancelled": "bright_black",
    "skipped": "bright_black",
    "paused": "bright_black",
}
_SHOWN = ("name", "group", "status", "target", "payload", "cron", "every", "run_at", "timezone", "next_run_at")


def job_table(console: Console, job: dict[str, JsonValue]) -> None:
    """A job and its latest runs."""
    table = Table(title=f"job {escape(str(job.get('job_id')))}", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key in _SHOWN:
        value = job.get(key)
        if value is not None and not (key == "timezone" and job.get("cron") is None):
            table.add_row(key.replace("_", " "), coloured(str(value)) if key == "status" else cell(value))
    retry = job.get("retry")
    if isinstance(retry, dict):
        table.add_row("attempts", f"up to {retry.get('max_attempts')}, {job.get('timeout_s')} s each")
    console.print(table)
    if runs_of(job):
        runs_table(console, job)


def runs_table(console: Console, document: dict[str, JsonValue]) -> None:
    """Runs with all their attempts, one attempt a line."""
    table = Table()
    for heading in ("scheduled for", "run", "attempt", "started", "late", "took", "outcome"):
        table.add_column(heading, no_wrap=True)
    table.add_column("error or result", overflow="fold", min_width=12)
    for run in runs_of(document):
        late = lateness_s(run)
        head = [cell(run.get("scheduled_for")), coloured(str(run.get("status")))]
        attempts = attempts_of(run)
        if not attempts:
            table.add_row(*head, "", "", "", "", "", cell(run.get("reason")))
        for attempt in attempts:
            first = attempt.get("attempt") == 1 and late is not None
            said = attempt.get("error") or (run.get("result") if attempt.get("outcome") == "succeeded" else None)
            table.add_row(
                *head,
                cell(attempt.get("attempt")),
                _clock(attempt.get("started_at")),
                f"{late:.2f} s" if first else "",
                _took(attempt),
                coloured(str(attempt.get("outcome") or "running")),
                cell(said),
            )
            head = ["", ""]
    console.print(table if table.rows else "no runs yet")


def preview_table(console: Console, document: dict[str, JsonValue]) -> None:
    """The next times of a schedule."""
    table = Table(f"local time ({escape(str(document.get('timezone')))})", "UTC", "note")
    times = document.get("times")
    for time in times if isinstance(times, list) else []:
        if isinstance(time, dict):
            table.add_row(cell(time.get("local")), cell(time.get("utc")), cell(time.get("note")))
    console.print(table if table.rows else "this schedule never fires again")


def step_line(step: Step, seen_at: datetime) -> str:
    """One step of a job, by this machine's clock; `seen_at` stands in for a moment that nobody recorded."""
    clock = (step.at or seen_at).astimezone().strftime("%H:%M:%S.%f")[:-3]
    return f"[dim]{clock}[/dim]  {coloured(f'{step.status:<13}')} {escape(step.note)}"


def coloured(status: str) -> str:
    """A status in its colour."""
    colour = COLOURS.get(status.strip())
    return f"[{colour}]{status}[/{colour}]" if colour else escape(status)


def cell(value: JsonValue) -> str:
    """Any value of a document, short enough for a table."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _json(value)
    return escape(text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)")


def _json(value: JsonValue) -> str:
    """JSON with its numbers as the API wrote them: the standard encoder takes no Decimal."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {_json(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _clock(value: JsonValue) -> str:
    at = moment(value)
    return at.astimezone().strftime("%H:%M:%S.%f")[:-3] if at else ""


def _took(attempt: dict[str, JsonValue]) -> str:
    started, finished = moment(attempt.get("started_at")), moment(attempt.get("finished_at"))
    return f"{(finished - started).total_seconds():.2f} s" if started and finished else ""
