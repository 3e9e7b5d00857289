"""What every kind of target is: something that makes attempts. It never raises for what goes wrong in one."""

import threading
from typing import Protocol

from shared.model.call import Call
from shared.model.run import Result


class TargetCaller(Protocol):
    """Makes attempts, from several threads at once."""

    def call(self, call: Call, stop: threading.Event) -> Result:
        """Make one attempt and say how it ended, within `call.timeout_s` and a short time to clear up.

        Once `stop` is set the attempt is ended and `Outcome.CANCELLED` comes back, unless it had finished by then.
        """
        ...
