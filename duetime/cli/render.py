"""A job for people. It never decides anything and never prints JSON."""

import json
from datetime import UTC, datetime
from decimal import Decimal

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from duetime.cli.plain import span, visible
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
_SHOWN = (
    "name",
    "group",
    "status",
    "target",
    "payload",
    "cron",
    "every",
    "run_at",
    "timezone",
    "next_run_at",
    "depends_on",
)


def job_table(console: Console, job: dict[str, JsonValue]) -> None:
    """A job and its latest runs."""
    console.print(f"[bold]job {cell(job.get('job_id'))}[/bold]", highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key in _SHOWN:
        value = job.get(key)
        if value not in (None, []) and not (key == "timezone" and job.get("cron") is None):
            shown = coloured(str(value)) if key == "status" else json_cell(value) if key == "payload" else cell(value)
            table.add_row(key.replace("_", " "), shown)
    if job.get("overlap") not in (None, "allow"):
        table.add_row("overlap", f"{cell(job.get('overlap'))}, {cell(job.get('overlap_skipped'))} skipped")
    retry = job.get("retry")
    if isinstance(retry, dict):
        table.add_row("attempts", f"up to {cell(retry.get('max_attempts'))}, {cell(job.get('timeout_s'))} s each")
    console.print(table)
    if runs_of(job):
        console.print("\n[bold]runs[/bold], newest first, times in UTC", highlight=False)
        runs_list(console, job)


def results_list(console: Console, document: dict[str, JsonValue]) -> int:
    """What became of the jobs of a batch, a line each. Returns how many were not taken."""
    for result in _results_of(document):
        job, problem = result.get("job"), result.get("problem")
        if isinstance(job, dict):
            _line(console, coloured(f"{job.get('status')!s:<13}"), cell(job.get("job_id")))
        elif isinstance(problem, dict):
            _line(console, f"[red]not taken    [/red]  jobs\\[{cell(result.get('index'))}]")
            _below(console, cell(problem.get("detail")), indent=2)
    return refused_of(document)


def refused_of(document: dict[str, JsonValue]) -> int:
    """How many jobs of a batch were not taken."""
    return sum(result.get("status") != 201 for result in _results_of(document))


def _results_of(document: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    results = document.get("results")
    return [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []


def runs_list(console: Console, document: dict[str, JsonValue]) -> None:
    """Runs with all their attempts: a line for each, and below it what the attempt said. Fits into 60 columns."""
    for run in runs_of(document):
        late = lateness_s(run)
        _line(
            console,
            _time(run.get("scheduled_for")) + "Z",
            coloured(f"{run.get('status')!s:<{13 if late is not None else 0}}"),
            f"{span(late)} late" if late is not None else "",
        )
        if run.get("reason") is not None:
            _below(console, f"reason: {cell(run.get('reason'))}{_stands_for(run)}", indent=2)
        if run.get("progress") is not None:
            _below(console, f"progress: {json_cell(run.get('progress'))}", indent=2)
        *earlier, last = attempts_of(run) or [{}]
        for attempt in [*earlier, last] if last else []:
            _attempt(console, run, attempt, going_on="running" if attempt is last else "lost")
    if not runs_of(document):
        console.print("no runs yet")


def _attempt(console: Console, run: dict[str, JsonValue], attempt: dict[str, JsonValue], going_on: str) -> None:
    """`going_on`: what it is while it has no outcome; one that another has taken over gets its own only at the end."""
    started = _time(attempt.get("started_at"), milliseconds=True)
    same_day = started[:10] == _time(run.get("scheduled_for"))[:10]
    took = _took(attempt)
    _line(
        console,
        f"  attempt {cell(attempt.get('attempt'))}",
        started[11:] if same_day else started,
        coloured(f"{attempt.get('outcome') or going_on!s:<{9 if took else 0}}"),
        f"took {took}" if took else "",
    )
    if attempt.get("error") is not None:
        _below(console, cell(attempt.get("error")), indent=13)
    elif attempt.get("outcome") in ("succeeded", "cancelled") and run.get("result") is not None:
        _below(console, json_cell(run.get("result")), indent=13)


def _stands_for(run: dict[str, JsonValue]) -> str:
    missed = run.get("missed")
    return f", {missed} occurrences until {_time(run.get('missed_until'))}Z" if isinstance(missed, int) else ""


def _line(console: Console, *parts: str) -> None:
    console.print("  ".join(part for part in parts if part).rstrip(), highlight=False)


def _below(console: Console, markup: str, indent: int) -> None:
    text = Text.from_markup(markup, emoji=False, overflow="fold")
    console.print(Padding(text, (0, 0, 0, indent)), highlight=False)


def list_row(console: Console, job: dict[str, JsonValue]) -> None:
    """One job of a list: status, next time, id, and below it what people have said of it."""
    due = f"{_time(job.get('next_run_at'))}Z" if job.get("next_run_at") is not None else ""
    _line(console, coloured(f"{job.get('status')!s:<13}"), f"{due:<20}", cell(job.get("job_id")))
    tags = job.get("tags")
    said = [cell(job.get("name"))] if job.get("name") is not None else []
    said += [f"group {cell(job.get('group'))}"] if job.get("group") is not None else []
    said += [f"{cell(name)}={cell(value)}" for name, value in tags.items()] if isinstance(tags, dict) else []
    if said:
        _below(console, ", ".join(said), indent=37)


def json_text(value: JsonValue) -> str:
    """A value as one JSON text, its numbers as the API wrote them."""
    return _json(value)


def preview_list(console: Console, document: dict[str, JsonValue]) -> None:
    """The next times of a schedule, a line for each, and below it what there is to say of it."""
    times = document.get("times")
    found = [time for time in times if isinstance(time, dict)] if isinstance(times, list) else []
    if not found:
        console.print("this schedule never fires again")
        return
    heading = f"local time ({cell(document.get('timezone'))})"
    width = max(len(heading), *(len(cell(time.get("local"))) for time in found))
    console.print(f"[bold]{heading:<{width}}  UTC[/bold]", highlight=False)
    for time in found:
        console.print(f"{cell(time.get('local')):<{width}}  {cell(time.get('utc'))}", highlight=False)
        if time.get("note") is not None:
            _below(console, cell(time.get("note")), indent=2)


def step_line(step: Step, seen_at: datetime) -> str:
    """One step of a job, by this machine's clock; `seen_at` stands in for a moment that nobody recorded."""
    clock = (step.at or seen_at).astimezone().strftime("%H:%M:%S.%f")[:-3]
    return f"[dim]{clock}[/dim]  {coloured(f'{step.status:<13}')} {escape(visible(step.note))}"


def coloured(status: str) -> str:
    """A status in its colour."""
    colour = COLOURS.get(status.strip())
    return f"[{colour}]{status}[/{colour}]" if colour else escape(visible(status))


def cell(value: JsonValue) -> str:
    """Any value of a document, short and safe enough for a terminal; a text without quotes."""
    if value is None:
        return ""
    return _short(value if isinstance(value, str) else _json(value))


def json_cell(value: JsonValue) -> str:
    """A value of the user's, as JSON: a text has its quotes."""
    return _short(_json(value))


def _short(text: str) -> str:
    shown = visible(text[:400])
    return escape(shown if len(text) <= 400 else f"{shown}… ({len(text)} characters)")


def _json(value: JsonValue) -> str:
    """JSON with its numbers as the API wrote them: the standard encoder takes no Decimal."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {_json(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _time(value: JsonValue, milliseconds: bool = False) -> str:
    """`2026-11-29 12:00:05`, in UTC, with as many digits of fraction as it has, or just three."""
    at = moment(value)
    if at is None:
        return cell(value)
    plain = at.astimezone(UTC).replace(tzinfo=None)
    return plain.isoformat(" ", timespec="milliseconds") if milliseconds else str(plain)


def _took(attempt: dict[str, JsonValue]) -> str:
    started, finished = moment(attempt.get("started_at")), moment(attempt.get("finished_at"))
    return span((finished - started).total_seconds()) if started and finished else ""
