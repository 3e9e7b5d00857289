"""Moments as text: one canonical form, UTC with `Z`, at most microseconds. It never reads user input (rules.instants does)."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(moment: datetime) -> str:
    """`2026-11-29T12:00:05Z`, with a fraction only where there is one and without its trailing zeros."""
    utc = moment.astimezone(UTC)
    text = utc.strftime("%Y-%m-%dT%H:%M:%S") if utc.year >= 1000 else utc.replace(tzinfo=None).isoformat()[:19]
    fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
    return f"{text}{fraction}Z"


def from_text(text: str) -> datetime:
    """The reverse of `to_text`; raises ValueError for anything else."""
    if not text.endswith("Z"):
        raise ValueError(f"{text!r} does not end in Z")
    whole, _, fraction = text[:-1].partition(".")
    moment = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return moment.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else moment


def sort_text(moment: datetime) -> str:
    """`to_text` without its `Z`: texts of this form sort in the order of time, fractions included."""
    return to_text(moment)[:-1]


def from_sort_text(text: str) -> datetime:
    """The reverse of `sort_text`."""
    return from_text(text + "Z")


def epoch_s(moment: datetime) -> int:
    """Whole seconds since 1970, rounded down: what a TTL attribute holds."""
    return (moment - EPOCH) // timedelta(seconds=1)
