"""The local AWS as a process: start it, see that it lives, end it. It never looks into its state."""

import http
import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import duetime.emulator
from duetime.local.environment import last_lines
from duetime.local.errors import EmulatorError, PortInUseError
from duetime.local.places import StateDir

HOST = "127.0.0.1"
START_S = 60
STOP_S = 15  # its end takes some 5 s; longer on a busy machine
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LOG_LEVEL")  # nothing else of ours may reach the functions


class Emulator:
    """One ministack on one state directory. `port` 0 takes a free one, kept over restarts of this object."""

    def __init__(self, python: Path, state: StateDir, port: int) -> None:
        self._python = python
        self._state = state
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port or free_port()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process id while it lives."""
        return self._process.pid if self.alive and self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, enforce_iam: bool = False) -> None:
        """Start it and wait until it answers. Raises PortInUseError, EmulatorError with the end of its log."""
        if not is_free(self.port):  # else whoever has it would answer in its place
            raise PortInUseError(f"port {self.port} is taken: choose another with --emulator-port")
        script = Path(duetime.emulator.__file__).parent / "__main__.py"
        command = [str(self._python), str(script), "--port", str(self.port), "--state-dir", str(self._state.emulator)]
        with self._state.emulator_log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--enforce-iam"] if enforce_iam else command,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                cwd=self._state.path,
                stdin=subprocess.PIPE,  # it ends when this closes: when we are gone, however we went
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is ours to handle: we tell it when to end
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """End it and wait: it saves its state as its last act. Nothing happens when it is gone already."""
        if self._process is None:
            return
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        self._process = None

    def kill(self) -> None:
        """End it as a power cut would: nothing is saved."""
        if self._process is not None and self.alive:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        """The end of its log."""
        try:
            return last_lines(self._state.emulator_log.read_text(errors="replace"))
        except FileNotFoundError:
            return ""

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=2)
        try:
            connection.request("GET", "/_ministack/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if not self.alive:
                raise EmulatorError(f"the local AWS did not start:\n{self.said()}")
            if self._answers():
                return
            time.sleep(0.05)
        self.stop()
        raise EmulatorError(f"the local AWS did not answer on {self.url} within {START_S} s:\n{self.said()}")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether `port` of 127.0.0.1 can be opened."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
