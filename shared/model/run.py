"""The run: the record of one occurrence, and its attempts. Values only; the transition table is rules.lifecycle."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class RunStatus(StrEnum):
    """A claimed occurrence without a run item is enqueued; so is a stored run that waits (see Run.reason)."""

    ENQUEUED = "enqueued"
    RUNNING = "running"
    FAILED = "failed"  # an attempt failed and another will come
    SUCCEEDED = "succeeded"
    DEAD_LETTERED = "dead_lettered"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"  # its lease ran out, or its process died
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution try of a run. Open while `outcome` is None."""

    attempt: int
    worker_id: str
    started_at: datetime
    lease_expires_at: datetime
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    error: str | None = None
    error_kind: str | None = None  # what `retry_on` and `give_up_on` name


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One item of the store: occurrence `scheduled_for` of job `job_id`.

    `reason`: why it was skipped or cancelled, or what an enqueued one waits for.
    """

    job_id: str
    scheduled_for: datetime
    status: RunStatus
    revision: int
    attempt: int  # the number of the latest attempt; 0 for a run that was skipped
    attempts: tuple[Attempt, ...]  # the last 20
    lease_expires_at: datetime | None = None  # of the attempt that runs now
    retry_at: datetime | None = None  # when a failed run may start again
    cancel_requested: bool = False
    reason: str | None = None
    result: str | None = None  # one JSON text
    missed: int | None = None  # how many occurrences a skipped run stands for, from its own on
    missed_until: datetime | None = None  # the last of them
    waited: bool = False  # it was parked: its start says nothing about lateness
    requested_at: datetime | None = None  # by a trigger or a redrive: then no schedule brings it (again)
    earlier_attempts: int = 0  # made before its last redrive; they do not count against max_attempts
    progress: str | None = None  # one JSON text, the latest that its handler reported

    @property
    def attempts_of_round(self) -> int:
        """How many attempts count against the job's max_attempts."""
        return self.attempt - self.earlier_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a target made of one attempt."""

    outcome: Outcome
    result: str | None = None  # one JSON text, for succeeded
    error: str | None = None  # for the others; at most 512 bytes of UTF-8
    error_kinds: tuple[str, ...] = ()  # for the others, the narrowest first: ("KeyError", "LookupError", "Exception")
    note: str | None = None  # why a succeeded attempt has no result although its target returned something
