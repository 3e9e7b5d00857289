"""What every kind of target is: something that makes attempts. It never raises for what goes wrong in one."""

import threading
from dataclasses import dataclass, field
from typing import Protocol

from shared.model.call import Call
from shared.model.run import Result


@dataclass(slots=True, eq=False)
class Signals:
    """What the executor and an attempt's target tell each other while it is going on. Safe for all threads.

    A target that cannot hand `cancelled` on leaves it alone: the attempt is stopped a heartbeat later.
    """

    stop: threading.Event = field(default_factory=threading.Event)  # end the attempt now
    cancelled: threading.Event = field(default_factory=threading.Event)  # a cancel was asked for: tell the handler
    told: bool = False  # by the target: the handler asked, and was answered that it is cancelled
    progress: str | None = None  # by the target: one JSON text, the latest that the handler reported


class TargetCaller(Protocol):
    """Makes attempts, from several threads at once."""

    def call(self, call: Call, signals: Signals) -> Result:
        """Make one attempt and say how it ended, within `call.timeout_s` and a short time to clear up.

        Once `signals.stop` is set the attempt is ended and `Outcome.CANCELLED` comes back, unless it had finished by
        then.
        """
        ...
