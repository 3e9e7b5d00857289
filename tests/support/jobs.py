"""Jobs as the table holds them, for tests of what is decided about one. It writes none."""

from dataclasses import replace
from datetime import datetime

from shared.model.job import Job, JobSpec, JobStatus, Schedule, Target


def a_job(schedule: Schedule, created_at: datetime, **more: object) -> Job:
    """Job `a`, scheduled and not in the index, as it was submitted at `created_at`; `more` are other fields of it."""
    made = Job(
        job_id="a",
        spec=JobSpec(job_id="a", target=Target(kind="python", params={"handler": "demo.echo"}), schedule=schedule),
        status=JobStatus.SCHEDULED,
        due_at=None,
        revision=1,
        version=1,
        fence=0,
        created_at=created_at,
        changed_at=created_at,
    )
    return replace(made, **more)  # type: ignore[arg-type]
