"""What the local stack keeps over a restart: all of it, but the last 5 s after a `kill -9`; and IAM enforced."""

import time
from pathlib import Path

import httpx
import pytest

from duetime.client import Client
from duetime.local.stack import LocalStack
from tests.emulator.deployed import Deployed, in_s, text

pytestmark = [pytest.mark.deployed, pytest.mark.timeout(600)]

ECHO = {"kind": "python", "handler": "demo.echo"}


def test_jobs_outlive_a_kill_and_a_restart_with_iam_enforced(tmp_path: Path) -> None:
    with LocalStack(tmp_path) as stack, Client(stack.url) as client:
        deployed = Deployed(stack, client)
        deployed.submit({"job_id": "kept", "target": ECHO, "run_at": text(in_s(600))})
        deployed.submit({"job_id": "due-while-down", "target": ECHO, "run_at": text(in_s(8))})
        time.sleep(6)
        stack.kill_emulator()
        stack.restart_emulator()
        assert deployed.get("kept")["status"] == "scheduled"
        deployed.wait_for_status("due-while-down", "succeeded", 90)
    with LocalStack(tmp_path, enforce_iam=True) as stack, Client(stack.url) as client:
        deployed = Deployed(stack, client)
        assert deployed.get("kept")["status"] == "scheduled"
        deployed.submit({"job_id": "with-iam", "target": ECHO, "run_at": text(in_s(3))})
        deployed.wait_for_status("with-iam", "succeeded", 60)
        path = f"{stack.emulator_url}/_aws/execute-api/{stack.outputs['ApiId']}/$default/v1/health"
        assert httpx.get(path).status_code in (401, 403)
