"""What has happened to a job so far, read from its document, as steps in the order of time. It never asks the API."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from duetime.cli.plain import span
from duetime.client import JsonValue

OVER = frozenset({"succeeded", "dead_lettered", "cancelled", "skipped", "completed"})
_RUN_OVER = frozenset({"succeeded", "dead_lettered", "cancelled", "skipped"})


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened. `key` is the same each time the same thing is read."""

    key: tuple[str, ...]
    at: datetime | None
    status: str
    note: str


def is_over(job: dict[str, JsonValue]) -> bool:
    """Whether nothing more will happen."""
    return job.get("status") in OVER


def succeeded(job: dict[str, JsonValue]) -> bool:
    """Whether it ended well: its status says so, or its last run's does."""
    newest = next(iter(_dicts(job.get("runs"))), {})
    return "succeeded" in {job.get("status"), newest.get("status") if job.get("status") == "completed" else None}


def steps(job: dict[str, JsonValue]) -> list[Step]:
    """All steps that the document shows, the oldest first."""
    found = []
    if created := moment(job.get("created_at")):
        found.append(Step(("scheduled",), created, "scheduled", _when(job)))
    runs = list(reversed(_dicts(job.get("runs"))))
    for run in runs:
        found += _run_steps(run)
    if job.get("status") == "enqueued":
        found.append(Step(("enqueued", str(job.get("run_at"))), None, "enqueued", "claimed, waits for its second"))
    if job.get("status") == "cancelled" and not any(run.get("status") == "cancelled" for run in runs):
        found.append(Step(("cancelled",), None, "cancelled", ""))
    return found


def lateness_s(run: dict[str, JsonValue]) -> float | None:
    """Seconds from the scheduled moment to the start of the first attempt; None while that is not known."""
    first = next(iter(_dicts(run.get("attempts"))), {})
    due, started = moment(run.get("scheduled_for")), moment(first.get("started_at"))
    if first.get("attempt") != 1 or due is None or started is None:
        return None
    return (started - due).total_seconds()


def moment(value: JsonValue) -> datetime | None:
    """A time of the API as an aware datetime."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def runs_of(document: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """The runs in a document, newest first."""
    return _dicts(document.get("runs"))


def attempts_of(run: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """The attempts of a run, oldest first."""
    return _dicts(run.get("attempts"))


def _run_steps(run: dict[str, JsonValue]) -> Iterator[Step]:
    key = ("run", str(run.get("scheduled_for")))
    late = lateness_s(run)
    for attempt in attempts_of(run):
        number = str(attempt.get("attempt"))
        lateness = f", {span(late)} after its time" if number == "1" and late is not None else ""
        yield Step(
            (*key, number, "started"), moment(attempt.get("started_at")), "running", f"attempt {number}{lateness}"
        )
        outcome = attempt.get("outcome")
        if isinstance(outcome, str) and outcome != "succeeded":
            note = f"attempt {number}: {attempt.get('error') or outcome}"
            yield Step((*key, number, "ended"), moment(attempt.get("finished_at")), outcome, note)
    status = run.get("status")
    if isinstance(status, str) and status in _RUN_OVER:
        last = next(reversed(attempts_of(run)), {})
        yield Step((*key, "over"), moment(last.get("finished_at")), status, str(run.get("reason") or ""))


def _when(job: dict[str, JsonValue]) -> str:
    if job.get("cron") is not None:
        return f"cron {job['cron']} ({job.get('timezone')})"
    return f"every {job['every']}" if job.get("every") is not None else f"for {job.get('run_at')}"


def _dicts(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
