"""The emulator for the tests, a server of its own for each test process. It keeps nothing and never leaves loopback."""

import contextlib
import functools
import os
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3

from duetime.local.environment import emulator_python

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN_S = 30


@functools.cache
def _client(service: str, url: str) -> Any:
    """Making a client takes longer than most tests."""
    session: Any = boto3.Session()
    return session.client(service, endpoint_url=url)


@dataclass(frozen=True)
class Emulator:
    """A running server. `clock_file` sets its time, see emulator_server."""

    url: str
    clock_file: Path
    pid: int

    def client(self, service: str) -> Any:
        """A plain boto3 client of it."""
        return _client(service, self.url)

    def set_time(self, moment: datetime | None) -> None:
        """Stop its clock at `moment`, or let it follow the machine's again."""
        with self.clock_file.open("r+b") as file:
            file.write(struct.pack("d", moment.timestamp() if moment else 0.0))


@contextlib.contextmanager
def running(services: str = "dynamodb,sqs") -> Iterator[Emulator]:
    """A server of its own, with nothing kept, stopped at the end."""
    python = emulator_python(ROOT)
    with tempfile.TemporaryDirectory(prefix="duetime-emulator-") as home:
        port, clock_file, log = _free_port(), Path(home) / "clock", Path(home) / "log"
        clock_file.write_bytes(bytes(8))
        with log.open("w") as output:
            process = subprocess.Popen(
                [python, "-I", ROOT / "tests/support/emulator_server.py", clock_file],
                env=_variables(port, home, services),
                cwd=home,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        emulator = Emulator(f"http://127.0.0.1:{port}", clock_file, process.pid)
        try:
            _wait_until_ready(emulator, process, log)
            yield emulator
        finally:
            process.terminate()
            if process.stdin:
                process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _variables(port: int, home: str, services: str) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": home,
        "TMPDIR": home,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "PERSIST_STATE": "0",
        "SERVICES": services,
        "DOCKER_HOST": f"unix://{home}/no-docker",
        "LOG_LEVEL": "WARNING",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(emulator: Emulator, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_WITHIN_S
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{emulator.url}/_ministack/health", timeout=2).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the emulator did not start within {START_WITHIN_S} s:\n{log.read_text()[-2000:]}")
