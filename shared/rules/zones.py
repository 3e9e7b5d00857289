"""Time zones: which names are taken, and where a zone's wall clock jumps. It never asks for the host's own zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from shared.model.errors import InputError, InvalidScheduleError

SECOND = timedelta(seconds=1)
# These load on many hosts, but what they mean depends on the host.
HOST_DEPENDENT = frozenset({"Factory", "localtime", "posixrules"})
# No zone has changed its offset and back within so short a time since standard time exists.
_PROBE = timedelta(days=3)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - HOST_DEPENDENT


def read_zone(name: object, field: str = "timezone", *, error: type[InputError] = InvalidScheduleError) -> ZoneInfo:
    """The IANA zone `name`, spelled exactly so. Raises `error` for anything that is not in the zone database."""
    if not isinstance(name, str):
        raise error(field, f"must be the name of an IANA time zone such as Europe/London, not {type(name).__name__}")
    if name not in _names():
        raise error(field, f"{name!r:.60} is not an IANA time zone; write one such as Europe/London or UTC")
    return ZoneInfo(name)


def known_zone(name: str) -> ZoneInfo:
    """The zone of a stored job: its name was checked at submit, so the list of all names is not loaded for it."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as problem:
        raise InvalidScheduleError("timezone", f"{name!r:.60} is not in this time zone database") from problem


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of a zone's offset at `at` (UTC), and the stretch of the wall clock that it takes away or gives twice.

    The stretch is [wall_from, wall_until), naive. `before` and `after` are the offsets on either side.
    """

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def wall_from(self) -> datetime:
        return self.at.replace(tzinfo=None) + min(self.before, self.after)

    @property
    def wall_until(self) -> datetime:
        return self.at.replace(tzinfo=None) + max(self.before, self.after)


def offset(zone: ZoneInfo, wall: datetime, fold: int = 0) -> timedelta:
    """The zone's offset from UTC at a wall clock time (naive), on its first (0) or second (1) pass."""
    found = wall.replace(tzinfo=zone, fold=fold).utcoffset()
    assert found is not None  # a ZoneInfo always has one
    return found


def offset_at(zone: ZoneInfo, moment: datetime) -> timedelta:
    """The zone's offset from UTC at an instant."""
    found = moment.astimezone(zone).utcoffset()
    assert found is not None  # a ZoneInfo always has one
    return found


def shift_at(zone: ZoneInfo, wall: datetime) -> Shift | None:
    """The change that makes `wall` (naive, whole seconds) missing or doubled; None for an ordinary time."""
    # PEP 495: in a gap as in an overlap, fold 0 reads the offset before the change and fold 1 the one after it.
    before, after = offset(zone, wall, 0), offset(zone, wall, 1)
    if before == after:
        return None
    at = wall.replace(tzinfo=UTC)
    return _change(zone, at - max(before, after), at - min(before, after))


def shifts_between(zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[Shift]:
    """All changes of offset in (after, until], in the order of time."""
    low = after
    while low < until:
        high = min(low + _PROBE, until)
        if offset_at(zone, low) != offset_at(zone, high):
            yield _change(zone, low, high)
        low = high


def _change(zone: ZoneInfo, low: datetime, high: datetime) -> Shift:
    """The change in (low, high], found by halving; it falls on a whole second."""
    before, after = offset_at(zone, low), offset_at(zone, high)
    low, high = low.replace(microsecond=0), high.replace(microsecond=0)
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return Shift(high.astimezone(UTC), before, after)
