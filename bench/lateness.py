"""How late jobs start on the deployed local stack, as a distribution (figures: docs/performance.md). It judges nothing.

    .venv/bin/python -m bench.lateness [--rates 1 10 50] [--over 30]

For each rate jobs are spread over `over` seconds beyond the horizon, so that ticks claim them. Lateness is the start of
the first attempt less the scheduled time, both as the history shows them. Where it goes step by step: bench.stages.
"""

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import Any

from bench.page import markdown, options, publish
from duetime.client import Client, Document, Submission
from duetime.local.stack import LocalStack

TARGET = {"kind": "python", "handler": "demo.echo"}
HORIZON_S = 120
AHEAD_S = 150  # of the first job: submitted, and then claimed by ticks
SUBMITS_PER_S = 20  # what this machine takes in while it does all the rest


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 10, 50], help="jobs due a second")
    parser.add_argument("--over", type=int, default=30, help="seconds that the jobs of a rate are spread over")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as state,
        LocalStack(Path(state), context={"horizon_s": str(HORIZON_S)}) as stack,
        Client(stack.url) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        rows = [row(rate, chosen.over, run(client, pool, rate, chosen.over)) for rate in chosen.rates]
    head = ["jobs due", "over", "min", "p50", "p90", "p99", "max"]
    publish({"lateness": markdown(head, rows)}, chosen.write)


def run(client: Client, pool: ThreadPoolExecutor, rate: int, over_s: int) -> list[float]:
    """Seconds of lateness of `rate` jobs a second, the least first."""
    jobs = rate * over_s
    ahead = timedelta(seconds=AHEAD_S + jobs / SUBMITS_PER_S)
    first = (datetime.now(UTC) + ahead).replace(microsecond=0)
    dues = [first + timedelta(seconds=n // rate) for n in range(jobs)]
    submissions = [Submission(target=TARGET, payload_json=str(n), run_at=due) for n, due in enumerate(dues)]
    job_ids = [str(job["job_id"]) for job in pool.map(client.submit, submissions)]
    time.sleep(max(0.0, (dues[-1] - datetime.now(UTC)).total_seconds()) + 15)
    return sorted(lateness_s(job) for job in pool.map(client.get, job_ids))


def lateness_s(job: Document) -> float:
    """Seconds from the scheduled time to the start of the first attempt of the job's one run."""
    runs: Any = job["runs"]
    started = datetime.fromisoformat(runs[0]["attempts"][0]["started_at"])
    scheduled = datetime.fromisoformat(runs[0]["scheduled_for"])
    return float((started - scheduled).total_seconds())


def row(rate: int, over_s: int, late: Sequence[float]) -> list[str]:
    """One line of the table, in seconds."""
    hundredths = quantiles(late, n=100, method="inclusive")
    figures = [late[0], hundredths[49], hundredths[89], hundredths[98], late[-1]]
    return [f"{rate} a second", f"{over_s} s", *(f"{figure:.2f} s" for figure in figures)]


if __name__ == "__main__":
    main()
