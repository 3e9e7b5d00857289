"""One attempt, as a target sees it. Values only; it never says how the attempt is made."""

from dataclasses import dataclass
from datetime import datetime

from shared.model.instants import to_text
from shared.model.job import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Attempt `attempt` of occurrence `scheduled_for` (aware, UTC) of `job_id`."""

    job_id: str
    scheduled_for: datetime
    attempt: int  # 1 to max_attempts
    max_attempts: int
    target: Target
    payload: str  # one JSON text
    timeout_s: float  # from the moment the target is called

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of one run, different for every run: `<job_id>/<scheduled_for>`."""
        return f"{self.job_id}/{to_text(self.scheduled_for)}"
