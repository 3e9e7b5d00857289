"""What a start must pass before its target is called: parents, overlap, its group's limit. It never calls a target.

A gate is asked only after the run is started and its job is read, and only by jobs that use it: it costs the others
nothing, not even its loading. What it decides holds because its own write states what it has seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.model.job import Job
from shared.model.run import Run


class MustWaitError(Exception):
    """The run may not begin yet: it is parked with `reason`, and its message comes back after `back_s` seconds."""

    def __init__(self, reason: str, back_s: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.back_s = back_s


class MustSkipError(Exception):
    """The run will never begin: it is recorded as skipped for `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Gate(Protocol):
    """One such condition."""

    def enter(self, job: Job, run: Run, receives: int, now: datetime) -> None:
        """Let the run's attempt begin, or raise MustWaitError or MustSkipError.

        `receives`: how often its message has been received, for a growing wait.
        """
        ...

    def leave(self, job: Job, run: Run) -> None:
        """The attempt is over or did not begin; `run` is as it was started. Never raises for what it cannot undo."""
        ...


@dataclass(frozen=True, slots=True)
class Gates:
    """All gates, in order: one that makes a run wait keeps it from taking a place in the next.

    `all` gives the same ones at each call, and is first called for the first run that one of them is for.
    """

    all: Callable[[], Sequence[Gate]]

    def enter(self, job: Job, run: Run, receives: int, now: datetime) -> None:
        """Pass them all, or none. Raises MustWaitError, MustSkipError."""
        gates = self._for(job, run)
        for place, gate in enumerate(gates):
            try:
                gate.enter(job, run, receives, now)
            except BaseException:
                for passed in reversed(gates[:place]):
                    passed.leave(job, run)
                raise

    def leave(self, job: Job, run: Run) -> None:
        """The attempt that passed is over."""
        for gate in reversed(self._for(job, run)):
            gate.leave(job, run)

    def _for(self, job: Job, run: Run) -> Sequence[Gate]:
        """All of them, if the run may concern one; which it is, each knows. A new gate needs its word here."""
        spec = job.spec
        is_gated = spec.depends_on or spec.overlap != "allow" or spec.group is not None or run.cancel_requested
        return self.all() if is_gated else ()
