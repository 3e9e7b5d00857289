"""Chaos on the deployed stack: function processes are killed and the local AWS is restarted while jobs run.

    make faults-deployed            or: .venv/bin/python -m tests.faults.deployed [--jobs 2000] [--seed 1]

Then the history of every job is read over HTTP and judged. It takes some minutes, prints what it did and found, and
ends with exit code 1 if anything was lost, doubled, early or overlapping.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from duetime.client import Client
from duetime.local.stack import LocalStack
from tests.emulator.deployed import Deployed, moment, text

TARGET = {"kind": "python", "handler": "demo.sleep"}
CONTEXT = {"executor_timeout_s": "30"}  # the queue hides a message for 6 times that, if its executor dies at once
SPREAD_S = 90
KILL_EVERY_S = (0.5, 3.0)
DONE = ("succeeded", "dead_lettered")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as state,
        LocalStack(Path(state), context=CONTEXT) as stack,
        Client(stack.url) as client,
    ):
        deployed = Deployed(stack, client)
        begun = time.monotonic()
        job_ids = submit(deployed, chosen.jobs)
        killed = trouble(deployed, job_ids, random.Random(chosen.seed))
        jobs = deployed.get_all(job_ids)
        print(f"{len(jobs)} jobs, {killed} processes killed, 1 restart, {time.monotonic() - begun:.0f} s")
    attempts = Counter(len(run["attempts"]) for job in jobs for run in job["runs"])
    print("attempts of a run:", ", ".join(f"{count} × {number}" for number, count in sorted(attempts.items())))
    violations = [violation for job in jobs for violation in judged(job)]
    print("\n".join(violations[:50]))
    print(f"violations: {len(violations)}")
    sys.exit(1 if violations else 0)


def submit(deployed: Deployed, count: int) -> list[str]:
    """Jobs spread over `SPREAD_S` seconds, the first due soon after the last has been submitted."""
    first = (datetime.now(UTC) + timedelta(seconds=20 + count / 25)).replace(microsecond=0)
    bodies = [
        {
            "job_id": f"chaos-{n}",
            "target": TARGET,
            "payload": {"s": 0.02},
            "run_at": text(first + timedelta(seconds=n * SPREAD_S // count)),
            "timeout_s": 5,
            "retry": {"max_attempts": 50, "base_s": 1, "factor": 1},
        }
        for n in range(count)
    ]
    return [job["job_id"] for job in deployed.submit_all(bodies)]


def trouble(deployed: Deployed, job_ids: list[str], chance: random.Random) -> int:
    """Kill function processes until the jobs' time is over, restart the local AWS in between, then wait for the end."""
    killed = 0
    restarted = False
    last_due = max(moment(deployed.get(job_ids[-1])["run_at"]), datetime.now(UTC))
    middle = last_due - timedelta(seconds=SPREAD_S / 2)
    while (now := datetime.now(UTC)) < last_due + timedelta(seconds=10):
        if not restarted and now >= middle:
            restarted = True
            deployed.stack.restart_emulator()
        pids = list(function_processes(deployed.stack.emulator_pid or 0))
        if pids:
            os.kill(chance.choice(pids), signal.SIGKILL)
            killed += 1
        threading.Event().wait(chance.uniform(*KILL_EVERY_S))
    deployed.wait_until(lambda: not open_jobs(deployed, job_ids), 400, every_s=5)
    return killed


def open_jobs(deployed: Deployed, job_ids: list[str]) -> list[str]:
    return [job["job_id"] for job in deployed.get_all(job_ids) if job["status"] not in DONE]


def function_processes(emulator_pid: int) -> Iterator[int]:
    """The processes that the local AWS has started: its functions'."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == emulator_pid:
                yield int(entry.name)


def judged(job: dict[str, Any]) -> Iterator[str]:
    """What the history of one job shows to be wrong (I1, I2, I3, I7)."""
    name = job["job_id"]
    if job["status"] != "succeeded" or len(job["runs"]) != 1:
        yield f"I1: {name} is {job['status']} with {len(job['runs'])} runs"
        return
    (run,) = job["runs"]
    attempts = run["attempts"]
    numbers = [attempt["attempt"] for attempt in attempts]
    if numbers[-20:] != list(range(max(1, numbers[-1] - 19), numbers[-1] + 1)):
        yield f"I7: {name} has attempts {numbers}"
    if moment(attempts[0]["started_at"]) < moment(run["scheduled_for"]):
        yield f"I3: {name} started before its time"
    for earlier, later in pairwise(attempts):
        if moment(later["started_at"]) < min(moment(earlier["finished_at"]), moment(earlier["lease_expires_at"])):
            yield f"I2: {name}: attempt {later['attempt']} began while {earlier['attempt']} went on"
    if [attempt["outcome"] for attempt in attempts].count("succeeded") != 1 or attempts[-1]["outcome"] != "succeeded":
        yield f"I2: {name} has outcomes {[attempt['outcome'] for attempt in attempts]}"


if __name__ == "__main__":
    main()
