"""The slots of a schedule: every moment at which it is due. It never reads the clock, and never counts runs.

A slot is a base time plus its jitter. The jitter of a base time stays below the gap to the next one and within
`end_at`, so that slots keep the order of their base times: none is lost, repeated or overtaken, however large
`jitter_s` is.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.model.errors import DuetimeError
from shared.model.instants import to_text
from shared.model.job import Schedule
from shared.rules.sharding import stable_hash

_TICK = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)


def first_slot(schedule: Schedule, job_id: str, now: datetime) -> datetime | None:
    """When a job submitted at `now` is due first: `run_at` itself, even if past; else the next slot after `now`."""
    return schedule.run_at if schedule.run_at is not None else next_slot(schedule, job_id, now)


def next_slot(schedule: Schedule, job_id: str, after: datetime) -> datetime | None:
    """The first slot strictly after `after`, in UTC; None if there is none."""
    found = _Slots(schedule, job_id).next(after)
    return found.at if found else None


def slots(schedule: Schedule, job_id: str, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The slots in (after, until], the first `limit` of them."""
    series, found = _Slots(schedule, job_id), list[datetime]()
    while len(found) < limit and (slot := series.next(after)) and slot.at <= until:
        found.append(slot.at)
        after = slot.at
    return found


def latest_slot(schedule: Schedule, job_id: str, after: datetime, until: datetime) -> datetime | None:
    """The last slot in (after, until]; None if there is none. Bounded, however many there are."""
    return _Slots(schedule, job_id).latest(after, until)


def count_slots(schedule: Schedule, job_id: str, after: datetime, until: datetime, limit: int) -> int:
    """How many slots are in (after, until], at most `limit`. Bounded, however many there are."""
    return min(limit, _Slots(schedule, job_id).count(after, until))


def preview(schedule: Schedule, job_id: str, after: datetime, count: int) -> list[tuple[datetime, str | None]]:
    """The next `count` slots (at most `max_runs`), with a note where the wall clock moved or doubled one."""
    if schedule.run_at is not None:
        return [(schedule.run_at, None if schedule.run_at > after else "in the past; runs at once")][:count]
    series, found = _Slots(schedule, job_id), list[tuple[datetime, str | None]]()
    while len(found) < min(count, schedule.max_runs or count) and (slot := series.next(after)):
        found.append((slot.at, slot.note))
        after = slot.at
    return found


@dataclass(frozen=True, slots=True)
class Slot:
    """A moment, with a note where the wall clock moved or doubled it."""

    at: datetime
    note: str | None = None


class _Base(Protocol):
    """Times before jitter, strictly increasing."""

    def next(self, after: datetime) -> Slot | None: ...
    def latest(self, after: datetime, until: datetime) -> datetime | None: ...
    def count(self, after: datetime, until: datetime) -> int: ...


@dataclass(frozen=True, slots=True)
class _Once(_Base):
    run_at: datetime

    def next(self, after: datetime) -> Slot | None:
        return Slot(self.run_at) if after < self.run_at else None

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        return self.run_at if after < self.run_at <= until else None

    def count(self, after: datetime, until: datetime) -> int:
        return 1 if after < self.run_at <= until else 0


@dataclass(frozen=True, slots=True)
class _Every(_Base):
    """anchor + k × period, from k = `first` on."""

    anchor: datetime
    period: timedelta
    first: int

    def next(self, after: datetime) -> Slot | None:
        return self._slot(max(self._index(after) + 1, self.first))

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        index = self._index(until)
        found = self._slot(index) if index >= self.first else None
        return found.at if found and found.at > after else None

    def count(self, after: datetime, until: datetime) -> int:
        return max(0, self._index(until) - max(self._index(after), self.first - 1))

    def _index(self, moment: datetime) -> int:
        """The last k that is not after `moment`."""
        return (moment - self.anchor) // self.period

    def _slot(self, index: int) -> Slot | None:
        try:
            return Slot(self.anchor + index * self.period)
        except OverflowError:  # past the year 9999
            return None


class _Slots:
    """The base times within [start_at, end_at], with jitter."""

    def __init__(self, schedule: Schedule, job_id: str) -> None:
        self.base = _base(schedule, job_id)
        self.job_id = job_id
        self.jitter_s = schedule.jitter_s
        self.before = schedule.start_at - _TICK if schedule.start_at else None  # base times are strictly after it
        self.end_at = schedule.end_at

    def next(self, after: datetime) -> Slot | None:
        slot = self._pending(after)
        if slot is None and (following := self._next_base(after)):
            slot = self._jittered(following)
        if slot is not None and slot.at <= after:
            raise DuetimeError(
                f"job {self.job_id}: the slot after {after} came out as {slot.at}, which is not after it"
            )
        return slot

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        low = self._from(after - timedelta(seconds=self.jitter_s))
        found = self.base.latest(low, self._to(until))
        if found is None:
            return None
        slot = self._jittered(Slot(found))
        if slot.at > until:  # its jitter takes it out of the span: the one before is the last
            found = self.base.latest(low, found - _TICK)
            if found is None:
                return None
            slot = self._jittered(Slot(found))
        return slot.at if slot.at > after else None

    def count(self, after: datetime, until: datetime) -> int:
        after, until = self._from(after), self._to(until)
        if until <= after:
            return 0
        return self.base.count(after, until) + self._still_pending(after) - self._still_pending(until)

    def _next_base(self, after: datetime) -> Slot | None:
        found = self.base.next(self._from(after))
        return None if found is None or found.at > self._to(found.at) else found

    def _pending(self, after: datetime) -> Slot | None:
        """The slot of the last base time that is not after `after`, if its jitter carries it past `after`."""
        if not self.jitter_s:
            return None
        found = self.base.latest(self._from(after - timedelta(seconds=self.jitter_s)), self._to(after))
        base = self.base.next(found - _TICK) if found else None  # the same again, with its note
        slot = self._jittered(base) if base else None
        return slot if slot and slot.at > after else None

    def _still_pending(self, moment: datetime) -> int:
        return 1 if self._pending(moment) else 0

    def _jittered(self, base: Slot) -> Slot:
        if not self.jitter_s:
            return base
        width = self.jitter_s
        if following := self.base.next(base.at):
            width = min(width, (following.at - base.at) // _SECOND - 1)
        if self.end_at:
            width = min(width, (self.end_at - base.at) // _SECOND)
        drawn = stable_hash(f"{self.job_id}\0{to_text(base.at)}") % (width + 1)
        return Slot(base.at + drawn * _SECOND, base.note)

    def _from(self, moment: datetime) -> datetime:
        return max(moment, self.before) if self.before else moment

    def _to(self, moment: datetime) -> datetime:
        return min(moment, self.end_at) if self.end_at else moment


def _base(schedule: Schedule, job_id: str) -> _Base:
    if schedule.run_at is not None:
        return _Once(schedule.run_at)
    if schedule.every_s is not None and schedule.anchor is not None:
        # Anchored at start_at, the first time is start_at itself; anchored at the submit, it is one period later.
        return _Every(schedule.anchor, timedelta(seconds=schedule.every_s), 0 if schedule.start_at else 1)
    if schedule.cron is not None:
        from shared.rules.cron_slots import CronSlots  # here: what meets no cron job loads no cron reader

        return CronSlots.of(schedule.cron, schedule.timezone, schedule.dst_gap, job_id)
    raise DuetimeError(f"job {job_id}: its schedule has neither run_at nor cron nor every with an anchor")
