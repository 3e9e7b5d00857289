"""fire_times against oracles that know nothing of it: one goes minute by minute over the wall clock, one day by day."""

import calendar
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.rules.cron import DstGap, count_fires, fire_times, latest_fire, stored_cron

MINUTE = timedelta(minutes=1)
ZONES = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",  # negative DST, twice a year by the moon
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/Sao_Paulo",  # midnight gaps, until 2019
    "America/St_Johns",
    "Antarctica/Troll",  # two hours
    "Asia/Kolkata",
    "Asia/Pyongyang",  # half an hour at 23:30 in 2018
    "Australia/Lord_Howe",  # half an hour
    "Europe/Dublin",
    "Europe/Volgograd",
    "Pacific/Apia",  # a whole day missing in 2011
    "Pacific/Chatham",
    "Pacific/Norfolk",
]


@cache
def changes(zone: str) -> list[datetime]:
    """The hours (UTC) of 2011, 2018 and 2026 in which the zone's offset changes."""
    found = []
    for year in (2011, 2018, 2026):
        hour = datetime(year, 1, 1, tzinfo=UTC)
        while hour.year == year:
            following = hour + timedelta(hours=1)
            if hour.astimezone(ZoneInfo(zone)).utcoffset() != following.astimezone(ZoneInfo(zone)).utcoffset():
                found.append(hour)
            hour = following
    return found or [datetime(2026, 3, 1, tzinfo=UTC)]


@dataclass(frozen=True)
class Field:
    """What one field says, as text and as the values it stands for."""

    text: str
    values: frozenset[int]

    @property
    def has_star(self) -> bool:
        return self.text.startswith("*")


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> Field:
    """A star, a star with a step, or a list of values, ranges (also wrapping) and steps."""
    kind = draw(st.sampled_from(["star", "step", "list", "list"]))
    if kind == "star":
        return Field("*", frozenset(range(low, high + 1)))
    if kind == "step":
        step = draw(st.integers(1, high))
        return Field(f"*/{step}", frozenset(range(low, high + 1, step)))
    words, values = [], set()
    for _ in range(draw(st.integers(1, 3))):
        first, last = draw(st.integers(low, high)), draw(st.integers(low, high))
        step = draw(st.integers(1, 7))
        shape = draw(st.sampled_from(["value", "range", "stepped range", "from"]))
        if shape == "value":
            words.append(f"{first}")
            values.add(first)
        elif shape == "from":
            words.append(f"{first}/{step}")
            values |= set(range(first, high + 1, step))
        else:
            used = step if shape == "stepped range" else 1
            words.append(f"{first}-{last}" + (f"/{used}" if used > 1 else ""))
            round_trip = [*range(first, high + 1), *range(low, high + 1)]
            values |= set(round_trip[: round_trip.index(last, 0 if last >= first else high - first) + 1 : used])
    return Field(",".join(words), frozenset(values))


def by_minute(  # noqa: PLR0917
    zone: str, minutes: Field, hours: Field, weekdays: Field, after: datetime, until: datetime, dst_gap: DstGap
) -> list[datetime]:
    """Every minute in (after, until] at which the design says to fire."""
    named = not (minutes.has_star or hours.has_star)

    def fits(wall: datetime) -> bool:
        return (
            wall.minute in minutes.values and wall.hour in hours.values and (wall.isoweekday() % 7) in weekdays.values
        )

    def gap(before: datetime, now: datetime) -> Iterator[datetime]:
        wall = before + MINUTE
        while wall < now:
            yield wall
            wall += MINUTE

    found = []
    moment = after.replace(second=0, microsecond=0)
    wall = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    while (moment := moment + MINUTE) <= until:
        local = moment.astimezone(ZoneInfo(zone))
        before, wall = wall, local.replace(tzinfo=None, fold=0)
        if not named:
            due = fits(wall)
        else:
            due = local.fold == 0 and fits(wall)
            due = due or (dst_gap == "run" and any(fits(missing) for missing in gap(before, wall)))
        if due and moment > after:
            found.append(moment)
    return found


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and an instant within a day and a half before one of its changes, to the second."""
    zone = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(changes(zone)))
    return zone, change + timedelta(seconds=draw(st.integers(-129_600, 10_800)))


@settings(max_examples=120, deadline=None)
@given(moments(), fields(0, 59), fields(0, 23), fields(0, 6), st.sampled_from(["run", "skip"]))
@example(
    ("Pacific/Apia", datetime(2011, 12, 29, 22, 0, 7, tzinfo=UTC)),
    Field("30", frozenset({30})),
    Field("6", frozenset({6})),
    Field("*", frozenset(range(7))),
    "run",
)
@example(  # what falls into the gap and what is named at its end are one time
    ("Europe/Berlin", datetime(2026, 3, 28, 20, 0, tzinfo=UTC)),
    Field("0,30", frozenset({0, 30})),
    Field("2-3", frozenset({2, 3})),
    Field("*", frozenset(range(7))),
    "run",
)
@example(  # asked within the second pass
    ("Europe/Berlin", datetime(2026, 10, 25, 1, 10, tzinfo=UTC)),
    Field("30", frozenset({30})),
    Field("2", frozenset({2})),
    Field("*", frozenset(range(7))),
    "run",
)
def test_times_are_those_of_the_wall_clock_minute_by_minute(
    moment: tuple[str, datetime], minutes: Field, hours: Field, weekdays: Field, dst_gap: DstGap
) -> None:
    zone, after = moment
    until = after + timedelta(days=2, hours=12)
    expr = f"{minutes.text} {hours.text} * * {weekdays.text}"
    expected = by_minute(zone, minutes, hours, weekdays, after, until, dst_gap)

    found = [fire.astimezone(UTC) for fire in fire_times(expr, zone, after, len(expected) + 1, dst_gap=dst_gap)]

    assert found[: len(expected)] == expected, expr
    assert all(fire > until for fire in found[len(expected) :])
    cron = stored_cron(expr, zone, dst_gap, "any")
    assert count_fires(cron, after, until) == len(expected)
    assert latest_fire(cron, after, until) == (expected[-1] if expected else None)


def nearest_workday(day: date) -> date:
    if day.weekday() < 5:
        return day
    near = [day + timedelta(days=offset) for offset in (-1, 1, -2, 2)]
    return next(other for other in near if other.weekday() < 5 and other.month == day.month)


def last_of_month(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def last_workday(day: date) -> date:
    day = last_of_month(day)
    while day.weekday() > 4:
        day -= timedelta(days=1)
    return day


def near_rule(target: int) -> Callable[[date], bool]:
    return lambda day: target <= last_of_month(day).day and day == nearest_workday(day.replace(day=target))


def nth_rule(weekday: int, nth: int) -> Callable[[date], bool]:
    return lambda day: (
        day.isoweekday() % 7 == weekday
        and [d for d in range(1, day.day + 1) if day.replace(day=d).weekday() == day.weekday()].index(day.day)
        == nth - 1
    )


def last_rule(weekday: int) -> Callable[[date], bool]:
    return lambda day: day.isoweekday() % 7 == weekday and (day + timedelta(days=7)).month != day.month


@st.composite
def day_rules(draw: st.DrawFn, weekday: bool) -> tuple[str, Callable[[date], bool]]:
    plain = draw(fields(0, 6) if weekday else fields(1, 31))
    rules: list[tuple[str, Callable[[date], bool]]] = []
    if draw(st.booleans()):
        if weekday:
            rules.append((plain.text, lambda day: day.isoweekday() % 7 in plain.values))
        else:
            rules.append((plain.text, lambda day: day.day in plain.values))
        if plain.text == "*":
            return rules[0]
    for _ in range(draw(st.integers(0 if rules else 1, 2))):
        number = draw(st.integers(0, 7)) if weekday else draw(st.integers(1, 31))
        if weekday and draw(st.booleans()):
            nth = draw(st.integers(1, 5))
            rules.append((f"{number}#{nth}", nth_rule(number % 7, nth)))
        elif weekday:
            rules.append((draw(st.sampled_from([f"{number}L", f"l{number}"])), last_rule(number % 7)))
        else:
            rules.append(
                draw(
                    st.sampled_from(
                        [
                            ("L", lambda day: day == last_of_month(day)),
                            ("LW", lambda day: day == last_workday(day)),
                            (f"{number}W", near_rule(number)),
                        ]
                    )
                )
            )
    return ",".join(text for text, _ in rules), lambda day: any(fits(day) for _, fits in rules)


@settings(max_examples=120, deadline=None)
@given(
    day_rules(weekday=False),
    day_rules(weekday=True),
    fields(1, 12),
    st.dates(date(1990, 1, 1), date(2120, 1, 1)),
)
def test_days_are_those_of_the_calendar_day_by_day(
    days: tuple[str, Callable[[date], bool]], weekdays: tuple[str, Callable[[date], bool]], months: Field, start: date
) -> None:
    expr = f"0 12 {days[0]} {months.text} {weekdays[0]}"
    union = not (days[0].startswith("*") or weekdays[0].startswith("*"))

    def fits(day: date) -> bool:
        sides = (days[1](day), weekdays[1](day))
        return day.month in months.values and (any(sides) if union else all(sides))

    span = [start + timedelta(days=number) for number in range(500)]
    expected = [datetime(day.year, day.month, day.day, 12, tzinfo=UTC) for day in span if fits(day)]
    if not expected:
        return  # days that come once in many years have tests of their own

    after = datetime(start.year, start.month, start.day, tzinfo=UTC)
    assert fire_times(expr, "UTC", after, len(expected)) == expected, expr
