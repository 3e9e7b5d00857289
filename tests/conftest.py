"""Fixtures of the whole suite. The hooks on AWS calls are set before any client exists."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

os.environ |= {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "POWERTOOLS_METRICS_NAMESPACE": "Duetime",
    "POWERTOOLS_SERVICE_NAME": "duetime",
}
for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
    os.environ.pop(name, None)

import moto  # noqa: E402, F401  its hook, too, has to be in place before the first session
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from tests.support import (  # noqa: E402
    aws_rules,
    calls,
    clocks,
    emulator,
    emulator_backend,
    memory_backend,
    moto_backend,
    network,
)
from tests.support.aws import Aws  # noqa: E402
from tests.support.emulator import Emulator  # noqa: E402

calls.install()
calls.add(aws_rules.RULES)

# A busy machine makes no property false.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


network.guard()


@pytest.fixture(autouse=True)
def _rules_hold() -> Iterator[None]:
    """No request may break AWS's limits and nothing leaves loopback, whatever became of the error that said so."""
    aws_rules.RULES.forget()
    network.forget()
    yield
    broken = aws_rules.RULES.forget() + network.forget()
    assert not broken, "\n".join(broken)


def pytest_addoption(parser: pytest.Parser) -> None:
    backends = ("moto", "emulator", "memory")
    parser.addoption("--backend", choices=backends, help="run tests without a mark `backends` on this one")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `aws` runs on moto; under tests/emulator on the emulator; or as its mark `backends` says."""
    if "backend" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("backends")
    in_emulator = "emulator" in metafunc.definition.path.parent.parts
    names = marker.args if marker else (("emulator",) if in_emulator else ("moto",))
    if not marker and metafunc.config.getoption("--backend"):
        names = (metafunc.config.getoption("--backend"),)
    if names != ("moto",):
        metafunc.parametrize("backend", names, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """`moto`, `emulator` or `memory`."""
    return str(getattr(request, "param", "moto"))


@pytest.fixture(scope="session")
def emulator_server() -> Iterator[Emulator]:
    """One emulator for each test process."""
    with emulator.running() as running:
        yield running


@pytest.fixture
def aws(backend: str, request: pytest.FixtureRequest) -> Iterator[Aws]:
    """The table and the queues, fresh for each test."""
    if backend == "emulator":
        with emulator_backend.running(request.getfixturevalue("emulator_server")) as running:
            yield running
    elif backend == "memory":
        yield memory_backend.create(lambda: datetime.now(UTC))
    else:
        with moto_backend.running() as running:
            yield running


@pytest.fixture
def clock(backend: str, request: pytest.FixtureRequest) -> Iterator[clocks.ManualClock]:
    """Stands still at `clocks.START` until moved; this process and the stand-in for AWS follow it."""
    if backend != "emulator":
        with clocks.frozen_process() as frozen:
            yield frozen
        return
    server: Emulator = request.getfixturevalue("emulator_server")
    try:
        with clocks.frozen_process(server.set_time) as frozen:
            yield frozen
    finally:
        server.set_time(None)
