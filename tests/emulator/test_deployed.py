"""The stack as it is deployed, through HTTP: what the README promises, on the local AWS."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from duetime.client import ApiError, Client
from duetime.local.stack import LocalStack
from tests.emulator.deployed import HORIZON_S, Deployed, in_s, late_s, moment, text

pytestmark = [pytest.mark.deployed, pytest.mark.timeout(600)]

ECHO = {"kind": "python", "handler": "demo.echo"}
FAIL = {"kind": "python", "handler": "demo.fail"}
EACH_10_S = "*/10 * * * * *"
CRASH = {"kind": "python", "handler": "demo.crash"}
MANY = 1000
REFUSED = "refused"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with (
        LocalStack(Path(tmp_path_factory.mktemp("stack")), context={"horizon_s": str(HORIZON_S)}) as stack,
        Client(stack.url) as client,
    ):
        yield Deployed(stack, client)


@pytest.fixture(scope="module", autouse=True)
def many(deployed: Deployed) -> Iterator[Callable[[], tuple[datetime, list[str]]]]:
    """A thousand jobs for one second, far enough ahead that ticks claim them; submitted while other tests run."""
    due = in_s(HORIZON_S + 90)
    bodies = [{"job_id": f"same-second-{n}", "target": ECHO, "payload": n, "run_at": text(due)} for n in range(MANY)]
    with ThreadPoolExecutor(1) as beside:
        submitted = beside.submit(deployed.submit_all, bodies)
        yield lambda: (due, [job["job_id"] for job in submitted.result()])


@pytest.fixture(scope="module", autouse=True)
def recurring_since(deployed: Deployed) -> datetime:
    """When two recurring jobs were submitted, that go on while other tests run."""
    deployed.submit({"job_id": "each-10-s", "target": ECHO, "cron": EACH_10_S})
    deployed.submit({"job_id": "each-10-s-failing", "target": FAIL, "cron": EACH_10_S, "retry": {"max_attempts": 1}})
    return datetime.now(UTC)


def test_a_job_runs_at_its_second_and_shows_its_history(deployed: Deployed) -> None:
    due = in_s(3)
    submitted = deployed.client.call(
        "POST",
        "/v1/jobs",
        f'{{"job_id": "first", "target": {json.dumps(ECHO)}, "payload": {{"a": 30.40}}, "run_at": "{text(due)}"}}',
    )
    assert (submitted["status"], submitted["next_run_at"]) == ("enqueued", text(due))
    job = deployed.wait_for_status("first", "succeeded", 30)
    (run,) = job["runs"]
    (attempt,) = run["attempts"]
    assert (run["scheduled_for"], run["status"], attempt["attempt"]) == (text(due), "succeeded", 1)
    assert attempt["outcome"] == "succeeded"
    assert late_s(run) >= 0  # I3
    assert '"payload": {"a": 30.40}' in job.text or '"payload":{"a":30.40}' in job.text  # type: ignore[attr-defined]


def test_a_failing_job_is_tried_three_times_and_dead_lettered_once(deployed: Deployed) -> None:
    deployed.submit(
        {
            "job_id": "failing",
            "target": FAIL,
            "payload": {"message": "no luck"},
            "run_at": text(in_s(1)),
            "retry": {"max_attempts": 3, "base_s": 2, "factor": 2},
        }
    )
    (run,) = deployed.wait_for_status("failing", "dead_lettered", 60)["runs"]
    assert [one["attempt"] for one in run["attempts"]] == [1, 2, 3]
    assert {one["outcome"] for one in run["attempts"]} == {"failed"}
    for earlier, later in pairwise(run["attempts"]):
        assert moment(later["started_at"]) >= moment(earlier["finished_at"])
    letters = [one for one in deployed.dead_letters() if one["job"]["job_id"] == "failing"]
    assert len(letters) == 1
    (letter,) = letters
    assert letter["run"]["scheduled_for"] == run["scheduled_for"]
    assert [one["attempt"] for one in letter["attempts"]] == [1, 2, 3]
    assert "no luck" in letter["last_error"]


def test_a_crashing_process_is_one_attempt_and_the_next_comes_within_a_lease(deployed: Deployed) -> None:
    deployed.submit({"job_id": "crashing", "target": CRASH, "run_at": text(in_s(1)), "retry": {"base_s": 3}})
    (run,) = deployed.wait_for_status("crashing", "succeeded", 90)["runs"]
    first, second = run["attempts"]
    assert (first["outcome"], second["outcome"]) == ("lost", "succeeded")
    assert moment(second["started_at"]) - moment(first["started_at"]) <= timedelta(seconds=65)


def test_a_job_cancelled_between_claim_and_due_time_never_runs(deployed: Deployed) -> None:
    due = in_s(8)
    assert deployed.submit({"job_id": "cancelled", "target": ECHO, "run_at": text(due)})["status"] == "enqueued"
    answer = deployed.client.cancel("cancelled")
    assert (answer["status"], answer["running"]) == ("cancelled", [])
    assert deployed.client.cancel("cancelled")["status"] == "cancelled"
    time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()) + 4)  # the message is delivered, and void
    job = deployed.get("cancelled")
    assert (job["status"], [run for run in job["runs"] if run["attempts"]]) == ("cancelled", [])


def test_a_recurring_job_fires_at_each_slot_once_whatever_becomes_of_one(
    deployed: Deployed, recurring_since: datetime
) -> None:
    # Long enough that both submit and a tick have claimed some of the slots.
    time.sleep(max(0.0, (recurring_since + timedelta(seconds=75) - datetime.now(UTC)).total_seconds()))
    for job_id, status in (("each-10-s", "succeeded"), ("each-10-s-failing", "dead_lettered")):
        job = deployed.client.cancel(job_id)
        runs = [run for run in job["runs"] if run["attempts"]][::-1]
        slots = [moment(run["scheduled_for"]) for run in runs]
        assert slots[0] - recurring_since < timedelta(seconds=11)
        assert [(later - earlier).total_seconds() for earlier, later in pairwise(slots)] == [10] * (len(slots) - 1)
        assert len(slots) >= 7
        assert {run["status"] for run in runs[:-1]} == {status}
        assert all(len(run["attempts"]) == 1 and late_s(run) >= 0 for run in runs)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"target": {"kind": "python", "handler": "demo.echo"}, "run_at": ', "body"),
        ('{"target": {"kind": "python", "handler": "demo.echo"}}', "run_at"),
        ('{"target": {"kind": "python", "handler": "no.such"}, "run_at": "2027-01-01T00:00:00Z"}', "target.handler"),
        ('{"target": {"kind": "python", "handler": "demo.echo"}, "cron": "0 0 30 2 *"}', "cron"),
        ('{"target": {"kind": "python", "handler": "demo.echo"}, "every": "0s"}', "every"),
        ('{"target": {"kind": "python", "handler": "demo.echo"}, "every": "1h", "colour": 1}', "colour"),
        (
            '{"target": {"kind": "python", "handler": "demo.echo"}, "every": "1h", "retry": {"max_attempts": 0}}',
            "retry.max_attempts",
        ),
        (
            '{"target": {"kind": "python", "handler": "demo.echo"}, "every": "1h", "timezone": "Mars/Phobos"}',
            "timezone",
        ),
        ('{"target": {"kind": "python", "handler": "demo.echo"}, "every": "1h", "payload": NaN}', "payload"),
    ],
)
def test_bad_input_is_refused_by_its_field_and_nothing_is_stored(deployed: Deployed, body: str, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        deployed.client.call("POST", "/v1/jobs", body.replace("{", f'{{"job_id": "{REFUSED}", ', 1))
    assert refused.value.status == 400
    assert field in [name for name, _ in refused.value.errors]
    with pytest.raises(ApiError) as unknown:
        deployed.get(REFUSED)
    assert unknown.value.status == 404


def test_the_same_idempotency_key_makes_one_job(deployed: Deployed) -> None:
    body = {"target": ECHO, "every": "1h"}
    first = deployed.submit(body, **{"Idempotency-Key": "order-17"})
    again = deployed.submit(body, **{"Idempotency-Key": "order-17"})
    assert first["job_id"] == again["job_id"]
    with pytest.raises(ApiError) as refused:
        deployed.submit({"target": ECHO, "every": "2h"}, **{"Idempotency-Key": "order-17"})
    assert refused.value.status == 422


def test_a_thousand_jobs_for_one_second_run_once_each_and_never_early(
    deployed: Deployed, many: Callable[[], tuple[datetime, list[str]]]
) -> None:
    due, job_ids = many()

    def open_jobs() -> list[dict[str, Any]]:
        return [job for job in deployed.get_all(job_ids) if job["status"] != "succeeded"]

    time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
    deployed.wait_until(lambda: not open_jobs(), 180, every_s=5)
    jobs = deployed.get_all(job_ids)
    assert all(len(job["runs"]) == 1 and len(job["runs"][0]["attempts"]) == 1 for job in jobs)
    assert all(run["scheduled_for"] == text(due) and late_s(run) >= 0 for job in jobs for run in job["runs"])
    assert sorted(job["runs"][0]["result"] for job in jobs) == list(range(MANY))


def test_every_shard_is_ticked_and_the_journal_is_empty(deployed: Deployed) -> None:
    health = deployed.client.health()
    assert health["ok"] is True
    table = deployed.stack.outputs["TableName"]
    items = deployed.aws("dynamodb").scan(TableName=table, ConsistentRead=True)["Items"]
    assert [item for item in items if item["sk"]["S"].startswith("claim#")] == []  # I6
