"""`duetime up` and `duetime down` as a person uses them: real processes, the real stack."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duetime.local.places import StateDir
from duetime.local.stack import is_held, is_running

pytestmark = [pytest.mark.deployed, pytest.mark.timeout(600)]
FREE_PORTS = ["--port", "0", "--emulator-port", "0"]


class System:
    """The command, always on the same state directory."""

    def __init__(self, path: Path) -> None:
        self.state = StateDir(path)

    def call(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "duetime", *arguments], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        return done

    def up(self) -> dict[str, Any]:
        done = self.call("up", "--detach", "--json", "--state-dir", str(self.state.path), *FREE_PORTS)
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def down(self) -> str:
        return self.call("down", "--state-dir", str(self.state.path)).stdout


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    system = System(tmp_path / "state")
    yield system
    system.down()


def test_up_and_down_and_up_again(system: System) -> None:
    first = system.up()
    job = ["--url", first["url"]]
    system.call("submit", "--handler", "demo.echo", "--in", "1h", "--job-id", "later", *job)
    system.call("submit", "--handler", "demo.echo", "--in", "1s", "--watch", *job)

    refused = system.call("up", "--state-dir", str(system.state.path), *FREE_PORTS, code=1)
    assert f"already runs on {system.state.path}" in refused.stderr
    assert str(first["pid"]) in refused.stderr

    port = first["url"].rpartition(":")[2]
    other = str(system.state.path.parent / "other")
    taken = system.call("up", "--state-dir", other, "--port", port, code=1)
    assert f"port {port} cannot be opened" in taken.stderr
    assert "--port" in taken.stderr

    assert system.down().startswith("ended; the jobs are kept in")
    assert not is_held(system.state)
    assert not is_running(first["pid"])
    assert not is_running(first["emulator_pid"])
    assert system.down().startswith("no local Duetime runs on")
    system.call("show", "later", *job, code=3)

    begun = time.monotonic()
    second = system.up()
    assert time.monotonic() - begun < 60
    assert "cdk" not in system.state.log.read_text()  # nothing has changed: nothing is deployed
    system.call("show", "later", "--url", second["url"])

    # The local AWS dies: `up` says so and ends; what was saved is there the next time.
    os.kill(second["emulator_pid"], signal.SIGKILL)
    until = time.monotonic() + 30
    while is_held(system.state):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert "the local AWS has died" in system.state.log.read_text()

    # Whoever started it dies: the local AWS saves and ends by itself.
    third = system.up()
    os.kill(third["pid"], signal.SIGKILL)
    fourth = system.up()
    system.call("show", "later", "--url", fourth["url"])
    assert not Path(f"/proc/{third['emulator_pid']}").exists()
