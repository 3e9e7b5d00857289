"""Whether a run that has a place of its group still needs it: a pure decision. It never reads or writes."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from shared.model.run import Run, RunStatus

MAX_RUNNING = 100  # the places of a group stand in one item: about 150 bytes each


@dataclass(frozen=True, slots=True)
class Holder:
    """An attempt that has a place of its group. Before `until`, the end of its first lease, nobody need look at it."""

    job_id: str
    scheduled_for: datetime
    worker_id: str
    until: datetime


class Standing(Enum):
    """How a holder stands."""

    LIVE = "live"  # its attempt may be going on
    EXPIRED = "expired"  # its lease has run out and nobody has taken it over: it might still be renewed
    STALE = "stale"  # its attempt is over, and can never be live again


def standing(holder: Holder, run: Run | None, now: datetime) -> Standing:
    """How `holder` stands; `run` is its run as it is read at `now`, after the holder was read."""
    if run is None or run.status is not RunStatus.RUNNING or run.attempts[-1].worker_id != holder.worker_id:
        return Standing.STALE
    if run.lease_expires_at is not None and run.lease_expires_at < now:
        return Standing.EXPIRED
    return Standing.LIVE
