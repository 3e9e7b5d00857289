"""What the dead-letter queue gets: a run that used up its attempts, with job and history. It sends nothing."""

import json
import re
from dataclasses import dataclass
from datetime import datetime

from shared.model.instants import from_text, to_text
from shared.model.job import Job
from shared.model.run import Attempt, Run

PAYLOAD_BYTES = 128 * 1024  # as it stands in the message; a longer payload is left out, to stay under SQS's limit
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def dead_letter_text(job: Job, run: Run, attempts: tuple[Attempt, ...]) -> str:
    """One JSON text: `job`, `run`, `attempts`, `last_error`, `payload` (null, and `payload_omitted`, if too long)."""
    spec = job.spec
    # The payload stays as it was submitted, its numbers' digits too. In ASCII, for SQS does not take every character;
    # outside strings JSON has no others.
    payload = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], spec.payload)
    fits = len(payload) <= PAYLOAD_BYTES
    about = json.dumps(
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
            "payload_omitted": not fits,
        },
        separators=(",", ":"),
    )
    return f'{about[:-1]},"payload":{payload if fits else "null"}}}'


@dataclass(frozen=True, slots=True)
class Told:
    """What a dead letter is of."""

    job_id: str
    scheduled_for: datetime
    last_attempt: int


def told_of(body: str) -> Told | None:
    """What `body` tells of, if it is a text of `dead_letter_text`; None for anything else."""
    try:
        fields = json.loads(body)
        last = fields["attempts"][-1]["attempt"]
        told = Told(fields["run"]["job_id"], from_text(fields["run"]["scheduled_for"]), last)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None
    is_right = isinstance(told.job_id, str) and told.job_id and type(last) is int and last > 0
    return told if is_right else None


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
        "error_kind": attempt.error_kind,
    }
