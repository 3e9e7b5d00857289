"""The base times of a cron schedule, with notes. It knows no jitter and no bounds (rules.slots does), and no clock."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from shared.rules.cron import Cron, DstGap, Fire, count_fires, latest_fire, next_fire, stored_cron
from shared.rules.slots import Slot


@dataclass(frozen=True, slots=True)
class CronSlots:
    """The times of `cron` themselves."""

    cron: Cron

    @classmethod
    def of(cls, expr: str, timezone: str, dst_gap: DstGap, job_id: str) -> Self:
        """Of the expression of a stored job."""
        return cls(stored_cron(expr, timezone, dst_gap, job_id))

    def next(self, after: datetime) -> Slot | None:
        fire = next_fire(self.cron, after)
        return Slot(fire.at, _note(self.cron, fire)) if fire else None

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        return latest_fire(self.cron, after, until)

    def count(self, after: datetime, until: datetime) -> int:
        return count_fires(self.cron, after, until)


def _note(cron: Cron, fire: Fire) -> str | None:
    """What the wall clock did to a fixed time. Wildcard times follow it, so there is nothing to explain."""
    if fire.shift is None or not cron.fields.fixed:
        return None
    there = fire.at.astimezone(cron.zone)
    meant, offset = _time_text(fire.wall), there.isoformat(timespec="seconds")[19:]
    if not fire.shift.is_gap:
        return f"{meant} happens twice on this day; runs at the first, {offset}"
    if fire.wall.date() == there.date():
        return f"{meant} does not exist on this day; runs at {_time_text(there)} {offset}"
    return f"{meant} does not exist on {fire.wall:%Y-%m-%d}; runs at {there:%Y-%m-%d} {_time_text(there)} {offset}"


def _time_text(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"
