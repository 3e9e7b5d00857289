"""The real stack on the local AWS, as a test uses it: through HTTP. It never reaches into the product."""

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3

from duetime.client import Client
from duetime.local.stack import LocalStack

# What is due within this many seconds is claimed by submit itself, what is due later by a tick.
HORIZON_S = 75


@dataclass
class Deployed:
    """A running stack and a client of its API."""

    stack: LocalStack
    client: Client

    def submit(self, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        return self.client.call("POST", "/v1/jobs", json.dumps(body), headers)

    def submit_all(self, bodies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(self.submit, bodies))

    def get(self, job_id: str) -> dict[str, Any]:
        return self.client.get(job_id)

    def get_all(self, job_ids: Iterable[str]) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(self.get, job_ids))

    def wait_until(self, condition: Callable[[], Any], timeout_s: float, every_s: float = 0.5) -> Any:
        """The first true answer of `condition`; fails with its last answer after `timeout_s`."""
        until = time.monotonic() + timeout_s
        while True:
            found = condition()
            if found:
                return found
            assert time.monotonic() < until, f"not within {timeout_s} s: {found!r}"
            time.sleep(every_s)

    def wait_for_status(self, job_id: str, status: str, timeout_s: float) -> dict[str, Any]:
        def arrived() -> dict[str, Any] | None:
            job = self.get(job_id)
            return job if job["status"] == status else None

        try:
            return self.wait_until(arrived, timeout_s)
        except AssertionError:
            raise AssertionError(f"{job_id} is not {status} after {timeout_s} s: {self.get(job_id)}") from None

    def aws(self, service: str) -> Any:
        """An administrator's client of the local AWS."""
        admin = self.stack.admin_credentials
        return boto3.client(
            service,
            endpoint_url=self.stack.emulator_url,
            region_name=self.stack.region,
            aws_access_key_id=admin.access_key_id,
            aws_secret_access_key=admin.secret_access_key,
        )

    def dead_letters(self) -> list[dict[str, Any]]:
        """What lies in the dead-letter queue now; it stays there."""
        sqs = self.aws("sqs")
        found: dict[str, dict[str, Any]] = {}
        while True:
            answer = sqs.receive_message(
                QueueUrl=self.stack.outputs["DeadLetterQueueUrl"], MaxNumberOfMessages=10, VisibilityTimeout=5
            )
            new = {one["MessageId"]: json.loads(one["Body"]) for one in answer.get("Messages", [])}
            if not new.keys() - found.keys():
                return list(found.values())
            found |= new


def in_s(seconds: float) -> datetime:
    """A whole second at least `seconds` from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds + 1)).replace(microsecond=0)


def text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def moment(shown: str) -> datetime:
    return datetime.fromisoformat(shown)


def late_s(run: dict[str, Any]) -> float:
    """Start of the first attempt less the scheduled time."""
    return (moment(run["attempts"][0]["started_at"]) - moment(run["scheduled_for"])).total_seconds()
