"""The job: what the user submitted. Values only; every decision about them is in rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

Priority = Literal["high", "normal", "low"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # the most urgent first
Overlap = Literal["allow", "skip", "queue", "replace"]
OnParentFailure = Literal["skip", "run"]
MAX_CRON = 1000  # characters of an expression; a list of every value of all seven fields has 930


class JobStatus(StrEnum):
    """The stored status of a job. `completed` is never stored: it follows from the runs (see flows.shown)."""

    SCHEDULED = "scheduled"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a job is due: exactly one of run_at, cron, every (rules.schedules checks it). Moments are aware, in UTC."""

    run_at: datetime | None = None
    cron: str | None = None  # as the user wrote it
    every: str | None = None  # as the user wrote it
    every_s: int | None = None  # its length in seconds
    timezone: str = "UTC"  # IANA name; cron is read on its wall clock
    anchor: datetime | None = None  # slots of `every` are anchor + k × every_s
    start_at: datetime | None = None  # no occurrence before it
    end_at: datetime | None = None  # no occurrence after it
    max_runs: int | None = None
    jitter_s: int = 0
    dst_gap: Literal["run", "skip"] = "run"
    catch_up: Literal["latest", "all", "skip"] = "latest"

    @property
    def is_one_off(self) -> bool:
        return self.run_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how soon a failed run is tried again, and after which kinds of error. Delays in seconds."""

    max_attempts: int = 3
    base_s: float = 10
    factor: float = 2
    max_s: float = 3600
    retry_on: tuple[str, ...] = ()  # empty: every kind
    give_up_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a run calls: `{"kind": "python", "handler": "demo.echo"}` has kind `python` and params `{"handler": …}`."""

    kind: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A submission, read and checked, before it has an id or a place in the store."""

    job_id: str | None = None
    name: str | None = None
    group: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    target: Target
    payload: str = "null"  # one JSON text, kept to the letter
    schedule: Schedule
    retry: Retry = Retry()
    timeout_s: int = 60
    deadline_s: int | None = None
    overlap: Overlap = "allow"
    priority: Priority = "normal"
    depends_on: tuple[str, ...] = ()  # ids of jobs that must have succeeded before this one runs
    on_parent_failure: OnParentFailure = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What the index `due` shows of a job: just what a claim needs."""

    job_id: str
    schedule: Schedule
    due_at: datetime
    revision: int
    timeout_s: int
    runs_claimed: int = 0
    priority: Priority = "normal"
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One item of the store."""

    job_id: str
    spec: JobSpec
    status: JobStatus
    due_at: datetime | None  # the first occurrence not yet claimed; None when all are
    revision: int  # grows with each change of when
    version: int  # grows with each change by a user
    fence: int  # epoch of the tick that claimed last; 0 from submit on
    created_at: datetime
    changed_at: datetime  # last change of when
    runs_claimed: int = 0  # occurrences claimed so far, for max_runs
    claimed_until: datetime | None = None  # the last occurrence claimed
    payload_id: str | None = None  # names the payload's own item, where it has one
    first_revision: int = 1  # it was submitted under this one: what has an older one is of an earlier job of its id
    has_children: bool = False  # other jobs depend on it
