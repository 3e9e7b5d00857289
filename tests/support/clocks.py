"""Clocks that a test moves, and the clocks of the AWS stand-ins that move with them. They never sleep."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import time_machine

START = datetime(2026, 11, 30, 11, 58, 0, tzinfo=UTC)  # a Monday; far from any change of offset


class ManualClock:
    """Stands still until the test moves it. `moved` is told of each new time."""

    def __init__(self, start: datetime = START, moved: Callable[[datetime], None] = lambda _: None) -> None:
        self._now = start
        self._moved = moved

    def now(self) -> datetime:
        return self._now

    def set(self, moment: datetime) -> None:
        """Go to `moment`, an aware datetime, earlier or later."""
        self._now = moment.astimezone(UTC)
        self._moved(self._now)

    def advance(self, seconds: float) -> datetime:
        """Go forward by `seconds`; the new time is returned."""
        self.set(self._now + timedelta(seconds=seconds))
        return self._now


@contextlib.contextmanager
def frozen_process(start: datetime = START) -> Iterator[ManualClock]:
    """A manual clock that this whole process's `time.time` and `datetime.now` follow, moto's queues included."""
    with time_machine.travel(start, tick=False) as traveller:
        yield ManualClock(start, lambda moment: traveller.move_to(moment, tick=False))


class ShiftedClock:
    """The machine's own clock plus a shift that the test sets; `shifted` is told of each new shift, in seconds."""

    def __init__(self, shifted: Callable[[float], None] = lambda _: None) -> None:
        self._shift_s = 0.0
        self._shifted = shifted

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._shift_s)

    def set(self, moment: datetime) -> None:
        """Make it `moment` now, for the stand-in as well; it goes on from there."""
        self._shift_s = (moment - datetime.now(UTC)).total_seconds()
        self._shifted(self._shift_s)

    def advance(self, seconds: float) -> datetime:
        """Go forward by `seconds`; the new time is returned."""
        self._shift_s += seconds
        self._shifted(self._shift_s)
        return self.now()
