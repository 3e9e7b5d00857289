"""The message that moves a claimed occurrence to an executor."""

from dataclasses import dataclass
from datetime import datetime

from shared.model.job import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Occurrence `scheduled_for` of `job_id`, claimed under `revision` by the tick of epoch `fence` (0: by submit).

    `priority` and `group` say how it travels; they do not stand in its body.
    """

    job_id: str
    scheduled_for: datetime
    revision: int
    fence: int
    lease_s: int  # an attempt's first lease, in seconds
    skip: str | None = None  # the reason, for an occurrence that is to be recorded but not run
    missed: int | None = None
    missed_until: datetime | None = None
    woken: bool = False  # sent again because a parent is over: if the run has to wait, its own message comes back
    priority: Priority = "normal"
    group: str | None = None
