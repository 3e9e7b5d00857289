"""Reads the text of a cron expression into CronFields, through croniter where it is right. It never evaluates one.

What croniter 7 reads wrongly never reaches it: see rules.cron_items and docs/decisions/0002-cron-evaluation.md.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from shared.model.errors import InvalidScheduleError
from shared.model.job import MAX_CRON
from shared.rules.aws_forms import aws_cron
from shared.rules.cron_fields import CronFields, DayRule
from shared.rules.cron_items import PARTS, Items, read_field, wanted

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def read_cron(text: object, job_id: str | None = None) -> CronFields:
    """The fields of `text`; `job_id` is the seed of `H`. Raises InvalidScheduleError, also for what can never fire."""
    plain = _clean(text)
    seed = (job_id or "") if _has_hash(plain) else ""  # without H, jobs of one expression share one parse
    return _read(plain, seed)


def _clean(text: object) -> str:
    if not isinstance(text, str):
        raise _bad(f"must be text such as '0 9 * * MON-FRI', not {type(text).__name__}")
    if len(text) > MAX_CRON:
        raise _bad(f"must have at most {MAX_CRON} characters, not {len(text)}")
    if not text.isascii():
        raise _bad(f"{text!r:.60} has characters outside ASCII; write plain digits and letters")
    plain = text.strip(" \t").lower()
    if not plain:
        raise _bad("is empty; write five fields such as '0 9 * * MON-FRI'")
    if plain.startswith("@"):
        if plain not in ALIASES:
            raise _bad(f"{text!r:.60} is not known here; the aliases are {', '.join(ALIASES)}")
        return ALIASES[plain]
    if "=" in plain:
        raise _bad(f"{text!r:.60} names a zone; put the zone into the field `timezone`")
    for form, place in (("rate(", "every"), ("at(", "run_at")):
        if plain.startswith(form):
            raise _bad(f"{text!r:.60} is no cron expression; put it into the field `{place}`")
    return aws_cron(plain) if plain.startswith("cron") else plain


def _has_hash(plain: str) -> bool:
    return "h" in plain.replace("thu", "")


@lru_cache(maxsize=4096)
def _read(plain: str, seed: str) -> CronFields:
    texts = _split(plain)
    items = [read_field(part, text, seed) for part, text in zip(PARTS, texts, strict=True)]
    seconds, minutes, hours, days, months, weekdays, years = _expand(items)
    day, weekday = items[3], items[5]
    rule = DayRule(
        days=frozenset(days),
        last_day=day.last_day,
        last_workday=day.last_workday,
        near=frozenset(day.near),
        weekdays=frozenset(weekdays),
        nth=frozenset(weekday.nth),
        last=frozenset(weekday.last),
        union=not (_is_free(texts[3]) or _is_free(texts[5])),
    )
    fields = CronFields(
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        months=months,
        years=None if texts[6] == "*" else years,
        days=rule.table(),
        fixed=not (texts[1].startswith("*") or texts[2].startswith("*")),
    )
    if not fields.ever_fires():
        raise _bad(f"{plain!r:.60} can never fire: none of its months has such a day")
    return fields


def _split(plain: str) -> list[str]:
    """Seven texts: second, minute, hour, day of month, month, day of week, year."""
    texts = re.split(r"[ \t]+", plain)
    if len(texts) == 5:
        return ["0", *texts, "*"]
    if len(texts) == 6:
        return [*texts, "*"]
    if len(texts) == 7:
        return texts
    raise _bad(f"{plain!r:.60} has {len(texts)} fields; 5, 6 (seconds first) or 7 (seconds first, year last) are right")


def _is_free(text: str) -> bool:
    """The classic rule: a day field that begins with a star does not restrict, even if it has a step."""
    return text.startswith(("*", "?"))


def _expand(fields: list[Items]) -> list[tuple[int, ...]]:
    """The values of all fields, by croniter. A field with day words only has none."""
    from croniter import CroniterError, croniter  # here: what meets no cron expression starts without it

    words = [",".join(items.plain) or "*" for items in fields]
    try:
        expanded, _ = croniter.expand(" ".join(words), second_at_beginning=True)
    except CroniterError:
        raise _first_bad(fields, words) from None
    minute, hour, day, month, weekday, second, year = expanded
    in_order = (second, minute, hour, day, month, weekday, year)
    return [_values(items, found) for items, found in zip(fields, in_order, strict=True)]


def _values(items: Items, found: Sequence[int | str]) -> tuple[int, ...]:
    if not items.plain:
        return ()
    if "*" in found:
        return tuple(range(items.part.low, items.part.high + 1))
    return tuple(sorted(int(value) for value in found))


def _first_bad(fields: list[Items], words: list[str]) -> InvalidScheduleError:
    """Which field croniter refused: it is asked for each one alone."""
    from croniter import croniter

    for at, items in enumerate(fields):
        alone = ["*"] * len(fields)
        alone[at] = words[at]
        if not croniter.is_valid(" ".join(alone), second_at_beginning=True):
            return items.bad(f"is out of range; {wanted(items.part)} are right")
    return _bad("is not a cron expression")


def _bad(message: str) -> InvalidScheduleError:
    return InvalidScheduleError("cron", message)
