"""The clock: the only place that reads the time. It never sleeps."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Something that says what time it is, aware and in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)
