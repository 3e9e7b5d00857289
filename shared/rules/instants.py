"""Reads moments, zones and durations that a user wrote. It never uses the host's zone, and never guesses.

Moments are RFC 3339: date, `T`, time to the second, a fraction of at most six digits (more only if they are zero), and
an offset or `Z`; `t` and `z` may be in lower case, as the RFC allows. Leap seconds (`:60`), `24:00`, week dates, bare
dates, comma fractions and epoch numbers are refused. Without an offset, a moment is read in its `timezone`.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as fixed_offset
from zoneinfo import ZoneInfo

from shared.model.errors import InputError, InvalidScheduleError
from shared.rules.durations import read_duration
from shared.rules.zones import read_zone, shift_at

__all__ = ["read_duration", "read_instant", "read_zone"]

_RFC_3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,30}))?(?:([Zz])|([+-])(\d\d):(\d\d))?", re.ASCII
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_EXAMPLE = "write RFC 3339 such as 2027-01-31T09:00:00Z or 2027-01-31T09:00:00+01:00"


def read_instant(
    text: object,
    field: str,
    timezone: str | ZoneInfo | None = None,
    *,
    error: type[InputError] = InvalidScheduleError,
) -> datetime:
    """The moment `text` as an aware datetime in UTC, with its microseconds.

    Without an offset it is read in `timezone`; where that wall clock has no such time, or has it twice, it is refused.
    Raises `error` (of `field`, or of `timezone` for a bad zone) and nothing else.
    """

    def refuse(why: str) -> InputError:
        return error(field, f"{text!r:.60} {why}")

    if not isinstance(text, str):
        raise error(field, f"must be text, not {type(text).__name__}; {_EXAMPLE}")
    found = _RFC_3339.fullmatch(text)
    if found is None:
        raise refuse(f"{'looks like an epoch number' if _NUMBER.fullmatch(text) else 'is not a time'}; {_EXAMPLE}")
    day, time, fraction, zulu, sign, hours, minutes = found.groups()
    wall = _wall(day, time, fraction or "", refuse)
    if zulu or sign:
        return _to_utc(wall, UTC if zulu else _offset(sign, int(hours), int(minutes), refuse), refuse)
    if timezone is None:
        raise refuse("has no offset; add Z or one such as +01:00, or give `timezone`")
    zone = timezone if isinstance(timezone, ZoneInfo) else read_zone(timezone, error=error)
    return _to_utc(_unambiguous(wall, zone, refuse), zone, refuse)


_Refuse = Callable[[str], InputError]


def _wall(day: str, time: str, fraction: str, refuse: _Refuse) -> datetime:
    if fraction[6:].strip("0"):
        raise refuse("is finer than a microsecond; at most 6 digits of fraction are kept")
    year, month, day_of_month = (int(part) for part in day.split("-"))
    hour, minute, second = (int(part) for part in time.split(":"))
    try:
        # A wall clock time: its zone comes later.
        return datetime(year, month, day_of_month, hour, minute, second, int(fraction[:6].ljust(6, "0")))  # noqa: DTZ001
    except ValueError:
        raise refuse("is no time of the calendar; hours are 00-23, minutes and seconds 00-59") from None


def _offset(sign: str, hours: int, minutes: int, refuse: _Refuse) -> tzinfo:
    if hours > 23 or minutes > 59:
        raise refuse("has an offset out of range; -23:59 to +23:59 are right")
    ahead = timedelta(hours=hours, minutes=minutes)
    return fixed_offset(-ahead if sign == "-" else ahead)


def _unambiguous(wall: datetime, zone: ZoneInfo, refuse: _Refuse) -> datetime:
    try:
        shift = shift_at(zone, wall.replace(microsecond=0))
    except OverflowError:
        raise refuse("is outside the years 1 to 9999 in UTC") from None
    if shift is not None:
        why = "does not exist (the clocks go forward)" if shift.is_gap else "happens twice (the clocks go back)"
        raise refuse(f"{why} in {zone.key}; give the offset that you mean")
    return wall


def _to_utc(wall: datetime, zone: tzinfo, refuse: _Refuse) -> datetime:
    try:
        return wall.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise refuse("is outside the years 1 to 9999 in UTC") from None
