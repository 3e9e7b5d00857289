"""An attempt in a thread of its own whose executor falls asleep in its handler, until the test wakes it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from shared.flows.attempt import AttemptFlow
from shared.flows.workshop import Ended
from shared.model.call import Call
from shared.model.run import Result
from shared.queue import message_of
from shared.targets.target import Signals
from tests.support.world import SUCCEED, World

LEASE_S = 65
WAIT_S = 10  # in real time: more is a fault of the test


class Sleeper:
    """The attempt of the one message that is visible, asleep in its handler once this is made."""

    def __init__(self, world: World) -> None:
        self.signals = Signals()
        self._asleep, self._awake = threading.Event(), threading.Event()
        (received,) = world.receive()
        world.executor.queue.hide([(received.receipt, LEASE_S)], received.priority)
        workshop = replace(world.new_executor().workshop, targets=self)
        self.flow = AttemptFlow(workshop, message_of(received.body))
        self._ended: list[Ended] = []
        self._thread = threading.Thread(target=lambda: self._ended.append(self.flow.make()))
        self._thread.start()
        assert self._asleep.wait(WAIT_S)

    def call(self, call: Call, signals: Signals) -> Result:
        self.signals = signals
        self._asleep.set()
        assert self._awake.wait(WAIT_S)
        return SUCCEED

    def renew(self) -> None:
        """The executor's heartbeat comes; a lease that is lost stops the handler."""
        self.flow.renew(LEASE_S)

    def end(self) -> Ended:
        """Let the handler succeed; how that ended."""
        self.wake()
        return self._ended[0]

    def wake(self) -> None:
        self._awake.set()
        self._thread.join(WAIT_S)


@contextmanager
def sleeping() -> Iterator[Callable[[World], Sleeper]]:
    """Makes sleepers; none of them outlives the block."""
    made: list[Sleeper] = []

    def make(world: World) -> Sleeper:
        made.append(Sleeper(world))
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            one.wake()
