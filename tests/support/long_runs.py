"""One long attempt in the test's own thread: its handler is a script, and its heartbeats come when the script says so.

It never runs beside anything: what the executor's keeper does every 20 s is a step of the script.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shared.flows.attempt import AttemptFlow
from shared.flows.execute import Handled
from shared.flows.workshop import Ended
from shared.model.call import Call
from shared.model.run import Outcome, Result
from shared.queue import message_of
from shared.rules.lease import LEASE_MARGIN_S, LEASE_MAX_S, RENEW_EVERY_S
from shared.targets.target import Signals
from tests.support.world import SUCCEED, World

STOPPED = Result(outcome=Outcome.CANCELLED, error="ended because the run was cancelled")


@dataclass
class LongRun:
    """The attempt of the one message that is visible. A TargetCaller for it."""

    world: World
    script: Callable[["LongRun"], Result | None]  # None: it succeeds with null
    signals: Signals = field(default_factory=Signals)

    def make(self) -> Ended:
        """The attempt, and the acknowledgment or the backoff that follows."""
        (received,) = self.world.receive()
        workshop = replace(self.world.executor.workshop, targets=self)
        message = message_of(received.body)
        self.flow = AttemptFlow(workshop, message)
        ended = self.flow.make()
        self.world.acknowledge([Handled(received, message, ended)])
        if ended.back_s is not None:
            self.world.executor.queue.hide([(received.receipt, ended.back_s)], received.priority)
        return ended

    def call(self, call: Call, signals: Signals) -> Result:
        self.signals = signals
        return self.script(self) or SUCCEED

    def beat(self, after_s: float = RENEW_EVERY_S) -> None:
        """Time passes, and the executor's heartbeat comes."""
        self.world.clock.advance(after_s)
        self.flow.renew(LEASE_MAX_S + LEASE_MARGIN_S)

    def is_cancelled(self) -> bool:
        """`run.cancelled()`, as the python target answers it."""
        self.signals.told = self.signals.cancelled.is_set()
        return self.signals.told

    @property
    def is_stopped(self) -> bool:
        return self.signals.stop.is_set()
