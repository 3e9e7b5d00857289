"""What the dead-letter queue gets: a run that used up its attempts, with job and history. It sends nothing."""

import json

from shared.model.instants import to_text
from shared.model.job import Job
from shared.model.run import Attempt, Run

PAYLOAD_BYTES = 128 * 1024  # a longer payload is left out, so that the message stays under SQS's limit


def dead_letter_text(job: Job, run: Run, attempts: tuple[Attempt, ...]) -> str:
    """One JSON text: `job`, `run`, `attempts`, `last_error`, `payload` (null, and `payload_omitted`, if too long)."""
    spec = job.spec
    fits = len(spec.payload.encode()) <= PAYLOAD_BYTES
    return json.dumps(
        {
            "job": {
                "job_id": job.job_id,
                "name": spec.name,
                "group": spec.group,
                "tags": dict(spec.tags),
                "target": {"kind": spec.target.kind, **spec.target.params},
                "max_attempts": spec.retry.max_attempts,
            },
            "run": {"job_id": run.job_id, "scheduled_for": to_text(run.scheduled_for), "status": "dead_lettered"},
            "attempts": [_attempt(attempt) for attempt in attempts],
            "last_error": attempts[-1].error if attempts else None,
            "payload": json.loads(spec.payload) if fits else None,
            "payload_omitted": not fits,
        },
        separators=(",", ":"),
    )


def unreadable_text(body: str, error: str) -> str:
    """For a message of the queue that is not one of ours: kept, with what is wrong about it."""
    return json.dumps({"unreadable": body[:20_000], "last_error": error}, separators=(",", ":"))


def _attempt(attempt: Attempt) -> dict[str, object]:
    return {
        "attempt": attempt.attempt,
        "worker_id": attempt.worker_id,
        "started_at": to_text(attempt.started_at),
        "finished_at": to_text(attempt.finished_at) if attempt.finished_at else None,
        "outcome": attempt.outcome,
        "error": attempt.error,
    }
