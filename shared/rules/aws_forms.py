"""AWS's spellings of a schedule, `cron(…)`, `rate(…)` and `at(…)`, put into ours. It never checks the values inside.

Source: EventBridge Scheduler user guide, "Schedule types". Its cron has six fields (minute, hour, day of month, month,
day of week with 1 = SUN, year) and wants `?` in one of the day fields.
"""

import re
from typing import Final

from shared.model.errors import InvalidScheduleError

_CRON = re.compile(r"cron\(([^()]*)\)", re.ASCII)
_RATE = re.compile(r"rate\([ ]*(\d{1,9})[ ]+(minute|hour|day)s?[ ]*\)", re.ASCII)
_AT = re.compile(r"at\(([^()]*)\)", re.ASCII)
# A number of the day of week field that is a weekday: not one of a step or after #.
_WEEKDAY_NUMBER = re.compile(r"(?<![#/\d])(\d+)(?=[-#,/l]|$)", re.ASCII)
_LATE_YEAR = re.compile(r"-21\d\d(?=[,/]|$)", re.ASCII)

UNITS: Final = {"minute": 60, "hour": 3600, "day": 86400}


def aws_cron(text: str) -> str:
    """`cron(0 10 ? * 6L 2027)` (in lower case) as seven fields of ours: `0 0 10 ? * 5l 2027`."""
    found = _CRON.fullmatch(text)
    if found is None:
        raise InvalidScheduleError(
            "cron", f"{text!r:.60} is not a cron expression; AWS's form is cron(0 10 ? * MON-FRI *)"
        )
    fields = found[1].split()
    if len(fields) != 6:
        raise InvalidScheduleError("cron", f"{text!r:.60} has {len(fields)} fields; AWS's cron(…) has 6, the year last")
    minute, hour, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise InvalidScheduleError(
            "cron", f"{text!r:.60} wants a ? in just one of day of month and day of week, as on AWS"
        )
    year = _LATE_YEAR.sub("-2099", year)  # AWS's years end in 2199, croniter's a hundred years before
    return f"0 {minute} {hour} {day} {month} {_weekdays(weekday)} {year}"


def _weekdays(text: str) -> str:
    """AWS counts 1 (Sunday) to 7 (Saturday); L alone is the last day of the week."""
    if text == "l":
        return "6"
    return _WEEKDAY_NUMBER.sub(_one_less, text)


def _one_less(found: re.Match[str]) -> str:
    number = found[1]
    if len(number) > 1 or not 1 <= int(number) <= 7:
        raise InvalidScheduleError(
            "cron", f"day of week {number:.20} is out of range; 1 (SUN) to 7 (SAT) are right on AWS"
        )
    return str(int(number) - 1)


def aws_rate(text: str) -> int | None:
    """The seconds of `rate(5 minutes)`; None for any other text."""
    found = _RATE.fullmatch(text)
    return int(found[1]) * UNITS[found[2]] if found else None


def aws_at(text: str) -> str | None:
    """The time inside `at(2027-01-01T09:00:00)`, on the wall clock of the schedule's zone; None for any other text."""
    found = _AT.fullmatch(text)
    return found[1] if found else None
