"""What the API answers: the shape of each document, and how it is made of the domain. It never leaves a key out.

All times are UTC, RFC 3339 with `Z`; a key without a value is null, lists and objects are never null. The shapes are
what the OpenAPI document shows.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Literal, cast
from zoneinfo import ZoneInfo

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from functions.submit.problems import Problem
from functions.submit.strict_json import embed
from shared.flows.again import Redriven
from shared.flows.inspect import Health, JobView, RunPage
from shared.model.instants import to_text
from shared.model.job import Retry, Schedule
from shared.model.run import Attempt, Run


class _DateTime:
    """What the OpenAPI document says of a time; pydantic is loaded only where that document is made."""

    def __get_pydantic_json_schema__(
        self, schema: object, handler: Callable[[object], dict[str, object]]
    ) -> dict[str, object]:
        return {**handler(schema), "format": "date-time"}


Time = Annotated[str, _DateTime()]


class AttemptDocument(TypedDict):
    """One try of a run. Open while `outcome` is null."""

    attempt: int
    worker_id: str
    started_at: Time
    lease_expires_at: Time
    finished_at: Time | None
    outcome: Literal["succeeded", "failed", "timed_out", "lost", "cancelled"] | None
    error: str | None
    error_kind: str | None


class RunDocument(TypedDict):
    """The record of one occurrence, with its last 20 attempts."""

    job_id: str
    scheduled_for: Time
    status: Literal["enqueued", "running", "failed", "succeeded", "dead_lettered", "cancelled", "skipped"]
    reason: str | None
    result: object
    progress: object
    missed: int | None
    missed_until: Time | None
    requested_at: Time | None
    attempts: list[AttemptDocument]


class RetryDocument(TypedDict):
    """How often and how soon a failed run is tried again; delays in seconds."""

    max_attempts: int
    base_s: float
    factor: float
    max_s: float
    retry_on: list[str]
    give_up_on: list[str]


JobStatusText = Literal[
    "scheduled",
    "enqueued",
    "running",
    "failed",
    "succeeded",
    "dead_lettered",
    "skipped",
    "paused",
    "cancelled",
    "completed",
]


class JobRowDocument(TypedDict):
    """A job as lists show it: without what does not stand in its own item."""

    job_id: str
    name: str | None
    group: str | None
    tags: dict[str, str]
    status: JobStatusText
    version: int
    target: dict[str, object]
    run_at: Time | None
    cron: str | None
    every: str | None
    timezone: str
    next_run_at: Time | None
    created_at: Time
    start_at: Time | None
    end_at: Time | None
    max_runs: int | None
    jitter_s: int
    catch_up: Literal["latest", "all", "skip"]
    deadline_s: int | None
    dst_gap: Literal["run", "skip"]
    overlap: Literal["allow", "skip", "queue", "replace"]
    priority: Literal["high", "normal", "low"]
    retry: RetryDocument
    timeout_s: int
    depends_on: list[str]
    on_parent_failure: Literal["skip", "run"]


class JobDocument(JobRowDocument):
    """A job with its latest 20 runs, newest first.

    `overlap_skipped`: how many runs were skipped because another was not over.
    """

    payload: object
    overlap_skipped: int
    runs: list[RunDocument]


class CancelledJobDocument(JobDocument):
    """A cancelled job; `running` names the occurrences of which an attempt was still going on."""

    running: list[Time]


class GroupDocument(TypedDict):
    """A group: at most `max_running` attempts at a time (null: any number), of which `running` are going on.

    Without a limit `running` counts none that began so.
    """

    group: str
    max_running: int | None
    running: int


class RedrivenDocument(TypedDict):
    """The occurrences whose runs begin again, the newest first; `more`: others are left for the next call."""

    redriven: list[Time]
    more: bool


class RunPageDocument(TypedDict):
    """Runs, newest first; `cursor` leads to the next page and is null on the last."""

    runs: list[RunDocument]
    cursor: str | None


class JobPageDocument(TypedDict):
    """Some jobs, or none; `cursor` leads to the next page and is null on the last."""

    jobs: list[JobRowDocument]
    cursor: str | None


class BatchJobDocument(TypedDict):
    """Job `index` of the call was made."""

    index: int
    status: Literal[201]
    job: JobDocument


class BatchProblemDocument(TypedDict):
    """Job `index` of the call was not made; 503 may say so of one that was."""

    index: int
    status: int
    problem: Problem


BatchResult = BatchJobDocument | BatchProblemDocument


class BatchDocument(TypedDict):
    """What became of each job, in their order."""

    results: list[BatchResult]


class OccurrenceDocument(TypedDict):
    """One time of a schedule, in UTC and on the wall clock of its zone."""

    utc: Time
    local: Time
    note: str | None


class PreviewDocument(TypedDict):
    """The next times of a schedule; fewer than asked for when it ends before."""

    timezone: str
    times: list[OccurrenceDocument]


class ShardHealthDocument(TypedDict):
    """One shard's tick."""

    shard: int
    last_tick_at: Time | None
    epoch: int


class HealthDocument(TypedDict):
    """`ok` is false when a shard's tick has not been seen for minutes."""

    ok: bool
    shards: list[ShardHealthDocument]


def job_document(view: JobView) -> JobDocument:
    job, spec, schedule = view.job, view.job.spec, view.job.spec.schedule
    return {
        "job_id": job.job_id,
        "name": spec.name,
        "group": spec.group,
        "tags": dict(spec.tags),
        "status": view.status,  # type: ignore[typeddict-item]
        "version": job.version,
        "target": {"kind": spec.target.kind, **spec.target.params},
        "payload": embed(spec.payload),
        "run_at": _time(schedule.run_at),
        "cron": schedule.cron,
        "every": schedule.every,
        "timezone": schedule.timezone,
        "next_run_at": _time(view.next_run_at),
        "created_at": to_text(job.created_at),
        "start_at": _time(schedule.start_at),
        "end_at": _time(schedule.end_at),
        "max_runs": schedule.max_runs,
        "jitter_s": schedule.jitter_s,
        "catch_up": schedule.catch_up,
        "deadline_s": spec.deadline_s,
        "dst_gap": schedule.dst_gap,
        "overlap": spec.overlap,
        "overlap_skipped": view.overlap_skipped,
        "priority": spec.priority,
        "retry": _retry_document(spec.retry),
        "timeout_s": spec.timeout_s,
        "depends_on": list(spec.depends_on),
        "on_parent_failure": spec.on_parent_failure,
        "runs": [run_document(run) for run in view.runs],
    }


def job_row_document(view: JobView) -> JobRowDocument:
    row: dict[str, object] = {**job_document(view)}
    del row["payload"], row["runs"], row["overlap_skipped"]
    return cast("JobRowDocument", row)


def cancelled_job_document(view: JobView) -> CancelledJobDocument:
    return {**job_document(view), "running": [to_text(run.scheduled_for) for run in view.running]}


def run_document(run: Run) -> RunDocument:
    return {
        "job_id": run.job_id,
        "scheduled_for": to_text(run.scheduled_for),
        "status": run.status.value,
        "reason": run.reason,
        "result": None if run.result is None else embed(run.result),
        "progress": None if run.progress is None else embed(run.progress),
        "missed": run.missed,
        "missed_until": _time(run.missed_until),
        "requested_at": _time(run.requested_at),
        "attempts": [_attempt_document(attempt) for attempt in run.attempts],
    }


def redriven_document(done: Redriven) -> RedrivenDocument:
    return {"redriven": [to_text(moment) for moment in done.runs], "more": done.more}


def run_page_document(page: RunPage, cursor: str | None) -> RunPageDocument:
    return {"runs": [run_document(run) for run in page.runs], "cursor": cursor}


def job_page_document(jobs: Sequence[JobView], cursor: str | None) -> JobPageDocument:
    return {"jobs": [job_row_document(view) for view in jobs], "cursor": cursor}


def preview_document(schedule: Schedule, times: list[tuple[datetime, str | None]]) -> PreviewDocument:
    zone = ZoneInfo(schedule.timezone)
    return {
        "timezone": schedule.timezone,
        "times": [
            {"utc": to_text(moment), "local": moment.astimezone(zone).isoformat(), "note": note}
            for moment, note in times
        ],
    }


def health_document(health: Health) -> HealthDocument:
    return {
        "ok": health.ok,
        "shards": [
            {"shard": shard.shard, "last_tick_at": _time(shard.last_tick_at), "epoch": shard.epoch}
            for shard in health.shards
        ],
    }


def _attempt_document(attempt: Attempt) -> AttemptDocument:
    return {
        "attempt": attempt.attempt,
        "worker_id": attempt.worker_id,
        "started_at": to_text(attempt.started_at),
        "lease_expires_at": to_text(attempt.lease_expires_at),
        "finished_at": _time(attempt.finished_at),
        "outcome": attempt.outcome.value if attempt.outcome else None,
        "error": attempt.error,
        "error_kind": attempt.error_kind,
    }


def _retry_document(retry: Retry) -> RetryDocument:
    return {
        "max_attempts": retry.max_attempts,
        "base_s": _plain(retry.base_s),
        "factor": _plain(retry.factor),
        "max_s": _plain(retry.max_s),
        "retry_on": list(retry.retry_on),
        "give_up_on": list(retry.give_up_on),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else to_text(moment)


def _plain(number: float) -> float:
    """10 rather than 10.0."""
    return int(number) if number == int(number) else number
