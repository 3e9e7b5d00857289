"""Moments as text: one canonical form, UTC with `Z`. It never reads user input (rules.instants does)."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(moment: datetime) -> str:
    """`2026-11-29T12:00:05Z`, with a fraction only where there is one and without its trailing zeros."""
    return sort_text(moment) + "Z"


def from_text(text: str) -> datetime:
    """The reverse of `to_text`; raises ValueError for anything else."""
    if not text.endswith("Z"):
        raise ValueError(f"{text!r} does not end in Z")
    return from_sort_text(text[:-1])


@lru_cache(maxsize=1024)  # one moment is written several times: a claim has it in four places
def sort_text(moment: datetime) -> str:
    """`to_text` without its `Z`: texts of this form sort in the order of time, fractions included."""
    text = moment.astimezone(UTC).isoformat().removesuffix("+00:00")
    return text.rstrip("0") if "." in text else text


def from_sort_text(text: str) -> datetime:
    """The reverse of `sort_text`."""
    return datetime.fromisoformat(text + "+00:00")


def epoch_s(moment: datetime) -> int:
    """Whole seconds since 1970, rounded down: what a TTL attribute holds."""
    return (moment - EPOCH) // timedelta(seconds=1)
