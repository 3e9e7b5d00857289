"""Reads one field of a cron expression: day words and `H` itself, the rest for croniter. It never sees another.

What croniter 7 gets wrong is written out as a list before croniter sees it: `a-a` (it takes the whole field), ranges
that wrap, 7 for Sunday inside a range. `R` is refused: its values would differ at each parse.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from shared.model.errors import InvalidScheduleError
from shared.rules.sharding import stable_hash

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class Part:
    """One field: its name, bounds, names for values, and the highest value that a bare H takes."""

    name: str
    low: int
    high: int
    names: tuple[str, ...]  # in the order of values, from the lowest
    hash_high: int

    @property
    def size(self) -> int:
        return self.high - self.low + 1


_SECOND = Part("second", 0, 59, (), 59)
_MINUTE = Part("minute", 0, 59, (), 59)
_HOUR = Part("hour", 0, 23, (), 23)
_DAY = Part("day of month", 1, 31, (), 28)  # H: a day that each month has
_MONTH = Part("month", 1, 12, _MONTHS, 12)
_WEEKDAY = Part("day of week", 0, 6, _WEEKDAYS, 6)
_YEAR = Part("year", 1970, 2099, (), 2099)
PARTS: Final = (_SECOND, _MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY, _YEAR)

_VALUE = r"(\d{1,4}|[a-z]{3})"
_PLAIN = re.compile(rf"(?:\*|{_VALUE})(?:/(\d{{1,4}}))?", re.ASCII)
_RANGE = re.compile(rf"{_VALUE}-{_VALUE}(?:/(\d{{1,4}}))?", re.ASCII)
_HASH = re.compile(r"h(?:\((\d{1,4})-(\d{1,4})\))?(?:/(\d{1,4}))?", re.ASCII)
_NEAR = re.compile(r"(\d{1,2})w", re.ASCII)
_NTH = re.compile(rf"{_VALUE}#(\d)", re.ASCII)
_LAST = re.compile(r"l([0-7]|[a-z]{3})|([0-7]|[a-z]{3})l", re.ASCII)


@dataclass(slots=True)
class Items:
    """What one field lists: the items that croniter reads, and the day words, which we read ourselves."""

    part: Part
    text: str
    plain: set[str] = field(default_factory=set)
    last_day: bool = False
    last_workday: bool = False
    near: set[int] = field(default_factory=set)
    nth: set[tuple[int, int]] = field(default_factory=set)
    last: set[int] = field(default_factory=set)

    def bad(self, why: str) -> InvalidScheduleError:
        return InvalidScheduleError("cron", f"{self.part.name} {self.text!r:.60} {why}")


def read_field(part: Part, text: str, seed: str) -> Items:
    items = Items(part, text)
    words = text.split(",")
    if len(words) > 1 and not {"*", "?"}.isdisjoint(words):
        raise items.bad("lists a star among other values; write the star alone or the values alone")
    for word in dict.fromkeys(words):
        _read_item(items, word, seed)
    return items


def _read_item(items: Items, word: str, seed: str) -> None:
    part = items.part
    if word == "?" and part in (_DAY, _WEEKDAY):
        items.plain.add("*")
    elif (found := _HASH.fullmatch(word)) and part is not _YEAR:
        items.plain |= _hashed(items, found, seed)
    elif part is _DAY and word in ("l", "lw"):
        items.last_day |= word == "l"
        items.last_workday |= word == "lw"
    elif part is _DAY and (found := _NEAR.fullmatch(word)):
        items.near.add(_number(items, found[1]))
    elif part is _WEEKDAY and (found := _NTH.fullmatch(word)):
        if not 1 <= int(found[2]) <= 5:
            raise items.bad("asks for a weekday that no month has; # takes 1 to 5")
        items.nth.add((_number(items, found[1]), int(found[2])))
    elif part is _WEEKDAY and (found := _LAST.fullmatch(word)):
        items.last.add(_number(items, found[1] or found[2]))
    elif found := _RANGE.fullmatch(word):
        items.plain |= _range(items, found[1], found[2], _step(items, found[3]))
    elif found := _PLAIN.fullmatch(word):
        _step(items, found[2])
        items.plain.add(word)
    else:
        raise items.bad(f"is not a list of {wanted(part)}")


def _number(items: Items, text: str) -> int:
    """A value of the field, by digits or name; Sunday is 0 whether written 0 or 7."""
    part = items.part
    value = part.low + part.names.index(text) if text in part.names else int(text) if text.isdigit() else None
    if part is _WEEKDAY and value == 7:
        return 0
    if value is None or not part.low <= value <= part.high:
        raise items.bad(f"is out of range; {wanted(part)} are right")
    return value


def _step(items: Items, text: str | None) -> int:
    if text is not None and int(text) == 0:
        raise items.bad("has a step of 0; a step is at least 1")
    return int(text or 1)


def _range(items: Items, low_text: str, high_text: str, step: int) -> set[str]:
    """A range in words that croniter reads rightly: as it is, or as its values where it wraps or is one value."""
    part = items.part
    low, high = _number(items, low_text), _number(items, high_text)
    if part is _WEEKDAY and high_text == "7" and low_text != "7":
        high = 7  # 0-7 and 5-7 end on Sunday; their values are taken modulo 7 below
    if low < high <= part.high:
        return {f"{low}-{high}/{step}"}
    if low > high and part is _YEAR:
        raise items.bad("runs backwards")
    end = high if low <= high else high + part.size
    return {str((value - part.low) % part.size + part.low) for value in range(low, end + 1, step)}


def _hashed(items: Items, found: re.Match[str], seed: str) -> set[str]:
    """`H`, `H/15`, `H(0-29)`, `H(0-29)/10`: values that depend on the seed and the field, and on nothing else."""
    part = items.part
    low = _number(items, found[1]) if found[1] else part.low
    high = _number(items, found[2]) if found[2] else part.hash_high if not found[3] else part.high
    if low > high:
        raise items.bad("has an H range that runs backwards")
    drawn = stable_hash(f"{seed}\0{part.name}")
    if not found[3]:
        return {str(low + drawn % (high - low + 1))}
    step = _step(items, found[3])
    return {str(value) for value in range(low + drawn % min(step, high - low + 1), high + 1, step)}


def wanted(part: Part) -> str:
    names = f" or {part.names[0].upper()}-{part.names[-1].upper()}" if part.names else ""
    return f"numbers {part.low}-{part.high}{names}"
