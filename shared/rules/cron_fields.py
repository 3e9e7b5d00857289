"""A cron expression as sets of values, and its times on an ideal wall clock. It never knows about zones or text."""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

# A month, as far as days can tell, is its length and the weekday of its first: 28 shapes in all.
LENGTHS = (28, 29, 30, 31)
DayTable = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class DayRule:
    """Which days of a month: its two day fields. Weekdays are 0 (Sunday) to 6."""

    days: frozenset[int] = frozenset()
    last_day: bool = False  # L
    last_workday: bool = False  # LW
    near: frozenset[int] = frozenset()  # 15W: the workday nearest to the 15th, within its month
    weekdays: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()  # MON#2: (weekday, which)
    last: frozenset[int] = frozenset()  # 5L: the last Friday
    union: bool = False  # both fields are restricted: a day that fits either is taken

    def table(self) -> DayTable:
        """The days of each of the 28 shapes: `table[length - 28][weekday of the first, Monday = 0]`."""
        return tuple(tuple(self._of_shape(length, first) for first in range(7)) for length in LENGTHS)

    def _of_shape(self, length: int, first: int) -> tuple[int, ...]:
        by_day = {day for day in self.days if day <= length}
        by_day |= {length} if self.last_day else set()
        by_day |= {_nearest_workday(length, length, first)} if self.last_workday else set()
        by_day |= {_nearest_workday(day, length, first) for day in self.near if day <= length}
        by_weekday = {day for day in range(1, length + 1) if self._fits_weekday(day, length, first)}
        return tuple(sorted(by_day | by_weekday if self.union else by_day & by_weekday))

    def _fits_weekday(self, day: int, length: int, first: int) -> bool:
        weekday = (first + day) % 7
        if weekday in self.weekdays or (weekday, (day + 6) // 7) in self.nth:
            return True
        return weekday in self.last and day + 7 > length


def _nearest_workday(day: int, length: int, first: int) -> int:
    """Monday to Friday nearest to `day`, never out of the month."""
    weekday = (first + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < length else day - 2
    return day


@dataclass(frozen=True, slots=True)
class CronFields:
    """The values of each field, sorted and never empty. `years` is None for every year."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: tuple[int, ...]
    years: tuple[int, ...] | None
    days: DayTable
    fixed: bool  # neither minute nor hour begins with a star: it names times, not a rhythm

    def ever_fires(self) -> bool:
        """Whether there is any day at all that fits."""
        if self.years is not None:
            return any(self._days_of(year, month) for year in self.years for month in self.months)
        # Without a year field every shape of a month comes round: within 40 years even 29 February on a Monday.
        return any(any(self.days[length - 28]) for month in self.months for length in _lengths_of(month))

    def at_or_after(self, wall: datetime, last_year: int) -> datetime | None:
        """The first time that is not before `wall` (naive, whole seconds), to the end of `last_year`."""
        if (
            self._falls_on(wall)
            and wall.year <= last_year
            and (time := self._time_at_or_after(wall.hour, wall.minute, wall.second))
        ):
            hour, minute, second = time
            return wall.replace(hour=hour, minute=minute, second=second)
        day = self._day_after(wall, last_year)
        return day and day.replace(hour=self.hours[0], minute=self.minutes[0], second=self.seconds[0])

    def count(self, start: datetime, end: datetime) -> int:
        """How many times there are in [start, end), without going through them."""
        if end <= start:
            return 0
        full_days = self._count_days(start, end) * len(self.hours) * len(self.minutes) * len(self.seconds)
        return full_days - self._count_before_on(start) + self._count_before_on(end)

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        first, length = monthrange(year, month)
        return self.days[length - 28][first]

    def _falls_on(self, day: datetime) -> bool:
        if day.month not in self.months or (self.years is not None and day.year not in self.years):
            return False
        return day.day in self._days_of(day.year, day.month)

    def _time_at_or_after(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        at_hour = bisect_left(self.hours, hour)
        if at_hour < len(self.hours) and self.hours[at_hour] == hour:
            at_minute = bisect_left(self.minutes, minute)
            if at_minute < len(self.minutes) and self.minutes[at_minute] == minute:
                at_second = bisect_left(self.seconds, second)
                if at_second < len(self.seconds):
                    return hour, minute, self.seconds[at_second]
                at_minute += 1
            if at_minute < len(self.minutes):
                return hour, self.minutes[at_minute], self.seconds[0]
            at_hour += 1
        return (self.hours[at_hour], self.minutes[0], self.seconds[0]) if at_hour < len(self.hours) else None

    def _day_after(self, day: datetime, last_year: int) -> datetime | None:
        for year, month in self._months_from(day.year, day.month, last_year):
            days = self._days_of(year, month)
            at = bisect_right(days, day.day) if (year, month) == (day.year, day.month) else 0
            if at < len(days):
                return datetime(year, month, days[at])  # noqa: DTZ001  a wall clock time
        return None

    def _months_from(self, year: int, month: int, last_year: int) -> Iterator[tuple[int, int]]:
        years = range(year, last_year + 1) if self.years is None else self.years
        for each_year in years:
            if year <= each_year <= last_year:
                for each_month in self.months:
                    if each_year > year or each_month >= month:
                        yield each_year, each_month

    def _count_days(self, start: datetime, end: datetime) -> int:
        """Days that fit, from the day of `start` on and before the day of `end`."""
        count = 0
        for year, month in self._months_from(start.year, start.month, end.year):
            if (year, month) > (end.year, end.month):
                break
            days = self._days_of(year, month)
            low = bisect_left(days, start.day) if (year, month) == (start.year, start.month) else 0
            high = bisect_left(days, end.day) if (year, month) == (end.year, end.month) else len(days)
            count += high - low
        return count

    def _count_before_on(self, wall: datetime) -> int:
        """Times on the day of `wall` that are before it."""
        if not self._falls_on(wall):
            return 0
        hours, minutes = bisect_left(self.hours, wall.hour), bisect_left(self.minutes, wall.minute)
        count = hours * len(self.minutes) * len(self.seconds)
        if wall.hour in self.hours:
            count += minutes * len(self.seconds)
            if wall.minute in self.minutes:
                count += bisect_left(self.seconds, wall.second)
        return count


def _lengths_of(month: int) -> tuple[int, ...]:
    return (28, 29) if month == 2 else (monthrange(2027, month)[1],)
