"""Follows a job until it is over, before the person's eyes. It never changes the job."""

import time
from datetime import UTC, datetime

from rich.console import Console

from duetime.cli.plain import span
from duetime.cli.progress import attempts_of, is_over, moment, runs_of, steps
from duetime.cli.render import coloured, step_line
from duetime.client import Client, Document

POLL_S = 0.4


def watch(client: Client, job_id: str, console: Console) -> Document:
    """Print each step as it is seen, and a live line below; answers the job's last document.

    A recurring job is followed until it has no further occurrence, or until Ctrl-C.
    """
    seen: set[tuple[str, ...]] = set()
    with console.status("") as line:
        while True:
            job = client.get(job_id)
            for step in steps(job):
                if step.key not in seen:
                    seen.add(step.key)
                    console.print(step_line(step, seen_at=datetime.now(UTC)), highlight=False)
            if is_over(job):
                return job
            until = time.monotonic() + POLL_S
            while (left := until - time.monotonic()) > 0:
                line.update(_live(job))
                time.sleep(min(0.1, left))


def _live(job: Document) -> str:
    now = datetime.now(UTC)
    status = str(job.get("status"))
    newest = next(iter(runs_of(job)), {})
    started = moment(next(reversed(attempts_of(newest)), {}).get("started_at"))
    if newest.get("status") == "running" and started:
        return f"{coloured('running')} for {(now - started).total_seconds():.1f} s"
    due = moment(job.get("next_run_at")) or (moment(job.get("run_at")) if status == "enqueued" else None)
    if due is None:
        return coloured(status)
    left = (due - now).total_seconds()
    return f"{coloured(status)}, due in {span(left)}" if left > 0 else f"{coloured(status)}, due since {span(-left)}"
