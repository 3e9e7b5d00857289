"""What happened, in order: submits, calls of handlers, answers of cancel, and each state that the table showed.

It says nothing about right or wrong (checker does), and nothing in it knows how the history came about.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

E = TypeVar("E", bound="Event")
Occurrence = tuple[str, datetime]  # job id, scheduled_for


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something at `at`, by the clock of whoever did it."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class Times:
    """Due at `first`, and every `period_s` after it, `count` times (None: for ever)."""

    first: datetime
    period_s: float | None = None
    count: int | None = None

    def slots(self, until: datetime, is_missed: Callable[[datetime], bool] = lambda slot: False) -> list[datetime]:
        """The occurrences due up to `until`, by plain arithmetic. What `is_missed` is none of the `count`."""
        found: list[datetime] = []
        slot, left = self.first, 1 if self.period_s is None else self.count or 10**6
        while slot <= until and left > 0:
            found.append(slot)
            left -= not is_missed(slot) or self.period_s is None
            slot = self.first + timedelta(seconds=len(found) * (self.period_s or 0))
        return found


@dataclass(frozen=True, kw_only=True)
class Submitted(Event):
    """A job was asked for. Due at `first`, and every `period_s` after it, `count` times (None: for ever)."""

    job_id: str
    first: datetime
    period_s: float | None = None
    count: int | None = None
    max_attempts: int = 3
    depends_on: tuple[str, ...] = ()
    runs_anyway: bool = False  # also when a parent is over without success

    @property
    def times(self) -> Times:
        return Times(first=self.first, period_s=self.period_s, count=self.count)


@dataclass(frozen=True, kw_only=True)
class JobRuled(Event):
    """The table shows the job under another revision and not cancelled: paused, resumed, or with other times."""

    job_id: str
    status: str
    times: Times


@dataclass(frozen=True, kw_only=True)
class ChangeAsked(Event):
    """A policy was asked for; it may take effect even if that is never answered."""

    job_id: str
    max_attempts: int


@dataclass(frozen=True, kw_only=True)
class TriggerAsked(Event):
    """A run beside the schedule was asked for; it may come even if that is never answered."""

    job_id: str


@dataclass(frozen=True, kw_only=True)
class Triggered(Event):
    """The API has answered that there will be this run."""

    job_id: str
    scheduled_for: datetime


@dataclass(frozen=True, kw_only=True)
class RedriveAsked(Event):
    """This run, or each of the job (None), is asked to begin again once it is dead-lettered."""

    job_id: str
    scheduled_for: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Redriven(Event):
    """The API has answered that this run begins again."""

    job_id: str
    scheduled_for: datetime


@dataclass(frozen=True, kw_only=True)
class Stored(Event):
    """The table shows a new job: what was submitted last under this id."""

    job_id: str


@dataclass(frozen=True, kw_only=True)
class Called(Event):
    """A handler was called. `is_current`: the table shows this attempt as the running one, its lease not over."""

    job_id: str
    scheduled_for: datetime
    attempt: int
    is_current: bool = True

    @property
    def occurrence(self) -> Occurrence:
        return self.job_id, self.scheduled_for


@dataclass(frozen=True, kw_only=True)
class Returned(Event):
    """The handler came to its end."""

    job_id: str
    scheduled_for: datetime
    attempt: int

    @property
    def occurrence(self) -> Occurrence:
        return self.job_id, self.scheduled_for


@dataclass(frozen=True, kw_only=True)
class CancelAsked(Event):
    """A cancel was asked for; it may take effect even if it never answers."""

    job_id: str


@dataclass(frozen=True, kw_only=True)
class Cancelled(Event):
    """Cancel has answered; `running` are the attempts that it named as still going on."""

    job_id: str
    running: tuple[tuple[datetime, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class JobCancelled(Event):
    """The table shows the job as cancelled."""

    job_id: str


@dataclass(frozen=True, kw_only=True)
class PolicySeen(Event):
    """The table shows the job with this policy and in this group."""

    job_id: str
    overlap: str
    group: str | None = None


@dataclass(frozen=True, kw_only=True)
class LimitSeen(Event):
    """The table shows the group with this limit; None: without one."""

    group: str
    max_running: int | None


@dataclass(frozen=True, kw_only=True)
class RunSeen(Event):
    """The table shows a run in this state; `status` None: its record is gone again."""

    job_id: str
    scheduled_for: datetime
    status: str | None
    attempt: int = 0
    attempts_kept: int = 0
    lease_expires_at: datetime | None = None
    reason: str | None = None
    missed_until: datetime | None = None
    requested: bool = False  # by a user: no schedule brings it (again)

    @property
    def occurrence(self) -> Occurrence:
        return self.job_id, self.scheduled_for


@dataclass(frozen=True, kw_only=True)
class Journaled(Event):
    """The table shows a journal page with these occurrences."""

    occurrences: tuple[Occurrence, ...]


@dataclass(frozen=True, kw_only=True)
class Sent(Event):
    """A process of this kind (tick, submit, execute, cancel, audit) sent messages."""

    by: str
    occurrences: tuple[Occurrence, ...]


@dataclass(frozen=True, kw_only=True)
class Ticked(Event):
    """A tick came to its end; `overdue` is what the index's keys in the table still showed as due before it began."""

    overdue: tuple[Occurrence, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Crashed(Event):
    """A process died at a step."""

    process: str
    step: str


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """A process ended with an error."""

    process: str
    error: str
    expected: bool


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """The history ends: what the table and the queue show then."""

    indexed: tuple[tuple[str, str, datetime], ...] = ()  # job id, status, due_at
    pages: int = 0
    messages: int = 0  # that should have been received by then
    findings: int = 0  # of an audit


@dataclass
class History:
    """All events, in the order in which they happened."""

    events: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ended_at(self) -> datetime:
        return self.events[-1].at
