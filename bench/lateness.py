"""How late jobs start on the deployed local stack, as a distribution (figures: docs/performance.md). It judges nothing.

    .venv/bin/python -m bench.lateness [--jobs 200] [--over 60]

The jobs are spread over a minute beyond the horizon, so that ticks claim them. Lateness is the start of the first
attempt less the scheduled time, both as the history shows them.
"""

import argparse
import os
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles

from duetime.client import Client, Document, Submission
from duetime.local.stack import LocalStack

TARGET = {"kind": "python", "handler": "demo.echo"}
HORIZON_S = 60
AHEAD_S = 150  # of the first job: submitted, and then claimed by ticks


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=200)
    options.add_argument("--over", type=int, default=60, help="seconds that the jobs are spread over")
    chosen = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as state,
        LocalStack(Path(state), context={"horizon_s": str(HORIZON_S)}) as stack,
        Client(stack.url) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        first = (datetime.now(UTC) + timedelta(seconds=AHEAD_S)).replace(microsecond=0)
        dues = [first + timedelta(seconds=n * chosen.over // chosen.jobs) for n in range(chosen.jobs)]
        submissions = [Submission(target=TARGET, payload_json=str(n), run_at=due) for n, due in enumerate(dues)]
        job_ids = [str(job["job_id"]) for job in pool.map(client.submit, submissions)]
        time.sleep(max(0.0, (dues[-1] - datetime.now(UTC)).total_seconds()) + 15)
        late = sorted(lateness_s(job) for job in pool.map(client.get, job_ids))
    show(late, chosen.jobs, chosen.over)


def lateness_s(job: Document) -> float:
    """Seconds from the scheduled time to the start of the first attempt of the job's one run."""
    (run,) = job["runs"]  # type: ignore[misc]
    started = datetime.fromisoformat(run["attempts"][0]["started_at"])  # type: ignore[index,call-overload]
    scheduled = datetime.fromisoformat(run["scheduled_for"])  # type: ignore[index,call-overload]
    return float((started - scheduled).total_seconds())


def show(late: list[float], jobs: int, over_s: int) -> None:
    """One table row, in seconds."""
    hundredths = quantiles(late, n=100, method="inclusive")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("| jobs | over | min | p50 | p90 | p99 | max |")
    print("|---|---|---|---|---|---|---|")
    figures = [late[0], hundredths[49], hundredths[89], hundredths[98], late[-1]]
    print(f"| {jobs} | {over_s} s | " + " | ".join(f"{figure:.2f} s" for figure in figures) + " |")


if __name__ == "__main__":
    main()
