"""Which occurrences each job is due for, by plain arithmetic: its times, its pauses, its new schedules, its cancel.

An id may have several lives, one after the other. Nothing here looks at what ran.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.faults.history import (
    Called,
    CancelAsked,
    Event,
    History,
    JobCancelled,
    JobRuled,
    Journaled,
    Stored,
    Submitted,
    Ticked,
    Times,
)

CLOCKS_APART = timedelta(seconds=5)  # more than any two of the clocks: what comes first is not sure


@dataclass
class Span:
    """From `since` on; `until` None: to the end."""

    since: datetime
    until: datetime | None = None


@dataclass
class Life:
    """A job from its submit to the cancel, if one was asked for."""

    job: Submitted
    times: list[tuple[Times, Span]]  # one after the other
    pauses: list[Span] = field(default_factory=list)
    cancel_asked_at: datetime | None = None
    is_taken_back: bool = False  # by its own submit, which found a run of the job before it going on

    @property
    def is_changed(self) -> bool:
        """Whether it was paused or got other times: then what was claimed before is void."""
        return bool(self.pauses) or len(self.times) > 1

    @property
    def is_paused(self) -> bool:
        return bool(self.pauses) and self.pauses[-1].until is None

    def slots(self, until: datetime, is_missed: Callable[[datetime], bool] = lambda slot: False) -> list[datetime]:
        """The occurrences due up to `until`. What `is_missed` does not count for the most that there may be."""
        found: list[datetime] = []
        for times, valid in self.times:
            found += times.slots(min(until, valid.until or until), is_missed)
        return found

    def was_due(self, slot: datetime, is_missed: Callable[[datetime], bool]) -> bool:
        """Whether `slot` is an occurrence of any of its times, as long as they were valid."""
        return any(
            slot in times.slots(min(slot, valid.until + CLOCKS_APART if valid.until else slot), is_missed)
            for times, valid in self.times
        )

    def pause_of(self, slot: datetime, late: timedelta) -> Span | None:
        """The pause that has held `slot` back, or what of it was `late`."""
        return next((p for p in self.pauses if p.since - late < slot and (p.until is None or slot <= p.until)), None)


@dataclass
class Lives:
    """All lives that the table has shown: a submit that died before its write made none."""

    found: list[Life] = field(default_factory=list)
    latest: dict[str, Life] = field(default_factory=dict)
    _asked: dict[str, Submitted] = field(default_factory=dict)

    @classmethod
    def of(cls, history: History) -> "Lives":
        made = cls()
        for event in history.events:
            made.take(event)
        return made

    def take(self, event: Event) -> None:
        """Go on by one event."""
        if isinstance(event, Submitted):
            self._asked[event.job_id] = event
        elif isinstance(event, Stored) and event.job_id in self._asked:
            job = self._asked[event.job_id]
            life = self.latest[event.job_id] = Life(job, [(job.times, Span(event.at))])
            self.found.append(life)
        elif isinstance(event, CancelAsked) and event.job_id in self.latest:
            life = self.latest[event.job_id]
            life.cancel_asked_at = life.cancel_asked_at or event.at
        elif isinstance(event, JobCancelled) and event.job_id in self.latest:
            life = self.latest[event.job_id]
            life.is_taken_back = life.cancel_asked_at is None
        elif isinstance(event, JobRuled) and event.job_id in self.latest:
            _rule(self.latest[event.job_id], event)


def _rule(life: Life, event: JobRuled) -> None:
    if event.status == "paused" and not life.is_paused:
        life.pauses.append(Span(event.at))
        return
    if event.status == "scheduled" and life.is_paused:
        life.pauses[-1].until = event.at
        return
    # Other times. What the pause has held back of the old ones never comes.
    life.times[-1][1].until = life.pauses[-1].since if life.is_paused else event.at
    life.times.append((event.times, Span(event.at)))
    if life.is_paused:
        life.pauses[-1].since = event.at


@dataclass(frozen=True)
class Expected:
    """An occurrence that must have been brought, its first start not later than `latest`."""

    job_id: str
    slot: datetime
    latest: datetime


def expected(
    history: History, late_s: float, ticks: int, missed: Iterable[tuple[str, datetime, datetime]]
) -> list[Expected]:
    """The occurrences that were due early enough to have been brought by the end of the history.

    What a cancel or a pause caught, or could have caught, is not among them: nor what was not claimed by then although
    it was due, for want of `ticks`. `missed`: spans of jobs that are on record as missed, which `max_runs` does not
    count.
    """
    late = timedelta(seconds=late_s)
    margin = timedelta(seconds=min(late_s, 900))
    spans = list(missed)
    called = {event.occurrence for event in history.of(Called)}
    claimed = {occurrence for event in history.of(Journaled) for occurrence in event.occurrences}
    found: list[Expected] = []
    for life in Lives.of(history).found:
        job_id, times = life.job.job_id, life.times[-1][0]
        if life.is_taken_back:
            continue
        is_held = life.cancel_asked_at is not None or life.is_paused
        if is_held and times.period_s is None and (job_id, times.first) not in called:
            continue  # a one-off that is cancelled is on record by that alone; one that is paused waits for its resume
        ends_at = min(history.ended_at, life.cancel_asked_at or history.ended_at)
        own = [(first, last) for id_, first, last in spans if id_ == job_id]
        for slot in life.slots(ends_at - margin, lambda slot, own=own: any(a <= slot <= b for a, b in own)):  # type: ignore[misc]
            held_at = life.pauses[-1].since if life.is_paused else ends_at
            if is_held and (job_id, slot) not in claimed and _ticks_between(history, slot, held_at) <= ticks:
                continue
            pause = life.pause_of(slot, margin)
            if pause is None:
                found.append(Expected(job_id, slot, slot + late))
            elif pause.until is not None and pause.until <= ends_at - margin:
                found.append(Expected(job_id, slot, max(slot, pause.until) + late))
    return found


def _ticks_between(history: History, since: datetime, until: datetime) -> int:
    return sum(since < tick.at < until for tick in history.of(Ticked))
