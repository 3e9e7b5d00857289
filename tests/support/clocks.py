"""A clock that a test moves, and that the AWS stand-ins follow. It never moves by itself and never sleeps."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import time_machine

from tests.support import calls
from tests.support.calls import Call, Observer

START = datetime(2026, 11, 30, 11, 58, 0, tzinfo=UTC)  # a Monday; far from any change of offset


class ManualClock:
    """A shared.clock.Clock that stands still until the test moves it. `moved` is told of each new time."""

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


class EndlessWaitError(BaseException):
    """A long poll while the clock stands still would never end; not an Exception, so that nothing hides it."""


class _NoLongPoll(Observer):
    def on_request(self, call: Call) -> None:
        if call.name == "sqs:ReceiveMessage" and call.params.get("WaitTimeSeconds"):
            raise EndlessWaitError("ReceiveMessage with WaitTimeSeconds: the test's clock stands still")


@contextlib.contextmanager
def frozen_process(also: Callable[[datetime], None] = lambda _: None, start: datetime = START) -> Iterator[ManualClock]:
    """A manual clock that this whole process's `time.time` and `datetime.now` follow, moto's queues included.

    `also` is told of each new time, the first one too, for what lives in another process.
    """
    with time_machine.travel(start, tick=False) as traveller, calls.observing(_NoLongPoll()):

        def moved(moment: datetime) -> None:
            traveller.move_to(moment, tick=False)
            also(moment)

        clock = ManualClock(start, moved)
        clock.set(start)
        yield clock
