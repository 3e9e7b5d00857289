"""Fixtures of the whole suite. The hooks on AWS calls are set before any client exists."""

import os
from collections.abc import Iterator

os.environ |= {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "POWERTOOLS_TRACE_DISABLED": "true",
}
for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
    os.environ.pop(name, None)

import moto  # noqa: E402, F401  its hook has to be in place before the first session, too
import pytest  # noqa: E402

from tests.support import calls, clocks, moto_backend  # noqa: E402
from tests.support.aws import Aws  # noqa: E402

calls.install()


@pytest.fixture
def aws() -> Iterator[Aws]:
    """The table and the queues."""
    with moto_backend.running() as running:
        yield running


@pytest.fixture
def clock() -> Iterator[clocks.ManualClock]:
    """Stands still at `clocks.START` until moved; the whole process, moto's queues included, follows it."""
    with clocks.frozen_process() as frozen:
        yield frozen
