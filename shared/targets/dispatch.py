"""Which caller makes an attempt: the one of the target's kind. It never calls anything itself."""

from collections.abc import Mapping

from shared.model.call import Call
from shared.model.run import Outcome, Result
from shared.targets.target import Signals, TargetCaller


class Targets:
    """All target kinds of this stack; itself a TargetCaller."""

    def __init__(self, callers: Mapping[str, TargetCaller]) -> None:
        self._callers = dict(callers)

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(self._callers)

    def call(self, call: Call, signals: Signals) -> Result:
        """Make the attempt; a kind that this stack does not have is a failed attempt, not an exception."""
        caller = self._callers.get(call.target.kind)
        if caller is None:
            known = ", ".join(sorted(self._callers)) or "none"
            return Result(
                outcome=Outcome.FAILED, error=f"target kind {call.target.kind!r} is not known; known: {known}"
            )
        return caller.call(call, signals)
