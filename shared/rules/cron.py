"""When a cron schedule fires: wall clock times, mapped to UTC by rules of our own. It never reads the clock.

Fixed times (neither minute nor hour begins with `*`) fire once for each time they name: in a gap at the first
instant after it (with `dst_gap="skip"` not at all), in an overlap at the first pass. Wildcard times follow the wall
clock: nothing in a gap, again in an overlap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

from shared.model.errors import DuetimeError, InvalidScheduleError
from shared.rules.cron_fields import CronFields
from shared.rules.cron_text import read_cron
from shared.rules.zones import SECOND, Shift, known_zone, offset, offset_at, read_zone, shift_at, shifts_between

LOOK_AHEAD_YEARS: Final = 50  # without a year field, the longest wait is 40 years: 29 February on one weekday
_LAST_YEAR: Final = 9998  # beyond it, arithmetic with offsets leaves datetime's range
_FIRST: Final = datetime(1, 1, 3, tzinfo=UTC)
_LAST: Final = datetime(_LAST_YEAR, 12, 31, tzinfo=UTC)

DstGap = Literal["run", "skip"]


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron schedule: its fields, the zone of its wall clock, and what it does with a time in a gap."""

    fields: CronFields
    zone: ZoneInfo
    dst_gap: DstGap = "run"


@dataclass(frozen=True, slots=True)
class Fire:
    """One time, at `at` (UTC), for the wall clock time `wall` (naive), with the `shift` that took or doubled it."""

    at: datetime
    wall: datetime
    shift: Shift | None = None


def fire_times(
    expr: str, timezone: str, after: datetime, count: int, *, dst_gap: DstGap = "run", job_id: str | None = None
) -> list[datetime]:
    """The next `count` times of `expr` strictly after `after` (aware, any zone), aware in `timezone`.

    Fewer if the schedule ends within 50 years. `job_id` is the seed of `H`. Raises InvalidScheduleError
    (field `cron`, `timezone` or `dst_gap`) for what cannot be read or can never fire.
    """
    if after.tzinfo is None:
        raise ValueError("`after` must be an aware datetime")
    zone = read_zone(timezone)
    if dst_gap not in ("run", "skip"):
        raise InvalidScheduleError("dst_gap", "must be 'run' or 'skip'")
    cron = Cron(read_cron(expr, job_id), zone, dst_gap)
    fires = _fires(cron, after, after.year + LOOK_AHEAD_YEARS)
    return [fire.at.astimezone(zone) for fire, _ in zip(fires, range(count), strict=False)]


def stored_cron(expr: str, timezone: str, dst_gap: DstGap, job_id: str) -> Cron:
    """The schedule of a stored job, which was checked at submit."""
    return Cron(read_cron(expr, job_id), known_zone(timezone), dst_gap)


def next_fire(cron: Cron, after: datetime) -> Fire | None:
    """The first time strictly after `after`; None if there is none within 50 years."""
    return next(_fires(cron, after, after.year + LOOK_AHEAD_YEARS), None)


def latest_fire(cron: Cron, after: datetime, until: datetime) -> datetime | None:
    """The last time in (after, until], in UTC. It halves the span instead of going through its times."""
    first = next_fire(cron, after)
    if first is None or first.at > until:
        return None
    # Whole seconds hold every time. Invariant: the first time after `low` is not after `until`; after `high` it is.
    low, high = first.at - SECOND, until.astimezone(UTC).replace(microsecond=0)
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        fire = next_fire(cron, middle)
        if fire is not None and fire.at <= until:
            low = fire.at - SECOND
        else:
            high = middle
    fire = next_fire(cron, low)
    return fire.at if fire else None


def _fires(cron: Cron, after: datetime, last_year: int) -> Iterator[Fire]:
    moment = max(after, _FIRST).astimezone(UTC) if after < _LAST else None
    last_year = min(last_year, _LAST_YEAR)
    while moment is not None:
        fire = _fixed(cron, moment, last_year) if cron.fields.fixed else _wildcard(cron, moment, last_year)
        if fire is None:
            return
        if fire.at <= moment:
            raise DuetimeError(f"the cron time after {moment} came out as {fire.at}, which is not after it")
        yield fire
        moment = fire.at


def _fixed(cron: Cron, after: datetime, last_year: int) -> Fire | None:
    wall: datetime | None = _wall(cron.zone, after) + SECOND
    while wall and (wall := cron.fields.at_or_after(wall, last_year)):
        shift = shift_at(cron.zone, wall)
        if shift is None:
            return Fire(_utc(wall, offset(cron.zone, wall)), wall)
        at = shift.at if shift.is_gap else _utc(wall, shift.before)
        if at > after and not (shift.is_gap and cron.dst_gap == "skip"):
            return Fire(at, wall, shift)
        wall = shift.wall_until
    return None


def _wildcard(cron: Cron, after: datetime, last_year: int) -> Fire | None:
    here = _wall(cron.zone, after)
    wall = cron.fields.at_or_after(here + SECOND, last_year)
    overlap = shift_at(cron.zone, here)
    if overlap is not None:
        first_pass = after < overlap.at
        if wall is not None and wall < overlap.wall_until:
            return Fire(_utc(wall, overlap.before if first_pass else overlap.after), wall, overlap)
        again = cron.fields.at_or_after(overlap.wall_from, last_year) if first_pass else None
        if again is not None and again < overlap.wall_until:
            return Fire(_utc(again, overlap.after), again, overlap)
    while wall is not None:
        shift = shift_at(cron.zone, wall)
        if shift is None or not shift.is_gap:
            return Fire(_utc(wall, offset(cron.zone, wall)), wall, shift)
        wall = cron.fields.at_or_after(shift.wall_until, last_year)
    return None


def count_fires(cron: Cron, after: datetime, until: datetime) -> int:
    """How many times there are in (after, until]. It counts by calendar, one stretch of steady offset at a time."""
    after, until = max(after, _FIRST).astimezone(UTC), min(until, _LAST).astimezone(UTC)
    if until <= after:
        return 0
    shifts = list(shifts_between(cron.zone, after, until))
    start = _wall(cron.zone, after) + SECOND
    if cron.fields.fixed and (overlap := shift_at(cron.zone, start - SECOND)) and after >= overlap.at:
        start = max(start, overlap.wall_until)
    count = 0
    for shift in shifts:
        count += cron.fields.count(start, shift.at.replace(tzinfo=None) + shift.before)
        start = shift.at.replace(tzinfo=None) + shift.after
        if cron.fields.fixed and shift.is_gap and cron.dst_gap == "run":
            # All that fell into the gap is one time at its end, together with what is named there.
            count += min(1, cron.fields.count(shift.wall_from, start)) * (1 - cron.fields.count(start, start + SECOND))
        elif cron.fields.fixed and not shift.is_gap:
            start = shift.wall_until
    return count + cron.fields.count(start, _wall(cron.zone, until) + SECOND)


def _wall(zone: ZoneInfo, moment: datetime) -> datetime:
    """The wall clock at an instant, naive, down to the whole second."""
    return moment.replace(tzinfo=None, microsecond=0) + offset_at(zone, moment)


def _utc(wall: datetime, ahead: timedelta) -> datetime:
    return (wall - ahead).replace(tzinfo=UTC)
