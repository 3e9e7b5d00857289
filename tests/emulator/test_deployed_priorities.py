"""A flood of low jobs on the stack as it is deployed: it delays neither high nor normal ones."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duetime.client import Client
from duetime.local.stack import LocalStack
from tests.emulator.deployed import Deployed, in_s, late_s, moment, text

pytestmark = [pytest.mark.deployed, pytest.mark.timeout(600)]

ECHO = {"kind": "python", "handler": "demo.echo"}
SLEEP = {"kind": "python", "handler": "demo.sleep"}
FLOOD = 300
SLEEP_S = 6
EACH = 8  # jobs of a priority, one a second


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with LocalStack(Path(tmp_path_factory.mktemp("stack"))) as stack, Client(stack.url) as client:
        yield Deployed(stack, client)


def one_a_second(name: str, priority: str, first: datetime) -> list[dict[str, Any]]:
    return [
        {
            "job_id": f"{name}-{priority}-{n}",
            "target": ECHO,
            "priority": priority,
            "run_at": text(first + timedelta(seconds=n)),
        }
        for n in range(EACH)
    ]


def runs_of(deployed: Deployed, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The one run of each job, once all have succeeded."""

    def succeeded() -> list[dict[str, Any]]:
        jobs = deployed.get_all(body["job_id"] for body in bodies)
        return jobs if all(job["status"] == "succeeded" for job in jobs) else []

    return [job["runs"][0] for job in deployed.wait_until(succeeded, 400, every_s=2)]


def started_at(run: dict[str, Any]) -> datetime:
    return moment(run["attempts"][0]["started_at"])


def test_a_flood_of_low_jobs_delays_neither_high_nor_normal_ones(deployed: Deployed) -> None:
    due = in_s(25)
    flood = [
        {
            "job_id": f"flood-{n}",
            "target": SLEEP,
            "payload": {"s": SLEEP_S},
            "priority": "low",
            "group": "noisy",
            "run_at": text(due),
        }
        for n in range(FLOOD)
    ]
    deployed.submit_all(flood)
    first = due + timedelta(seconds=3)  # the flood is at its height by then
    urgent, plain, low = (one_a_second("flooded", priority, first) for priority in ("high", "normal", "low"))
    deployed.submit_all([*urgent, *plain, *low])
    high_runs, normal_runs, low_runs, flood_runs = (runs_of(deployed, one) for one in (urgent, plain, low, flood))

    # A flood it was: what is low waited behind it, for far longer than anything else.
    assert 3 * max(late_s(run) for run in high_runs + normal_runs) < min(late_s(run) for run in low_runs)
    assert sum(started_at(run) > started_at(high_runs[-1]) for run in flood_runs) > FLOOD / 4
    assert all(late_s(run) >= 0 for run in high_runs + normal_runs)  # I3
    assert [run["attempts"][0]["attempt"] for run in flood_runs] == [1] * FLOOD
