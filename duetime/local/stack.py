"""One whole local Duetime: emulator, deployed stack, local URL. It never outlives the process that started it."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, TypeVar

from duetime.client import Client, ClientError
from duetime.local.access import Access, create_access, open_access
from duetime.local.deploy import REGION, ROOT_CREDENTIALS, Deployment
from duetime.local.emulator import Emulator, free_port, is_free
from duetime.local.environment import cdk_command, emulator_python, tools_end_on_failure
from duetime.local.errors import EmulatorError, SetUpError, StateInUseError
from duetime.local.forwarder import Forwarder, Upstream
from duetime.local.places import StateDir, project_root
from duetime.signing import Credentials

DEFAULT_PORT = 8484
EMULATOR_PORT = 4566
READY_S = 60
Part = TypeVar("Part", Emulator, Forwarder)


def _quiet(step: str) -> None:
    del step


class LocalStack:
    """Use it as a context manager, or call `start` and `stop`.

    `port` 0 and `emulator_port` 0 take free ports. `context` are further deploy-time choices (docs/deploy.md).
    `report` is told each step of the start in a few words. `start` raises the errors of duetime.local.errors.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        port: int = 0,
        emulator_port: int = 0,
        enforce_iam: bool = False,
        context: Mapping[str, str] | None = None,
        root: Path | None = None,
        report: Callable[[str], None] = _quiet,
    ) -> None:
        self.state = StateDir(state_dir.resolve())
        self.root = root or project_root()
        self.outputs: dict[str, str] = {}
        self.region = REGION
        self.enforce_iam = enforce_iam
        self._access = Access(caller=ROOT_CREDENTIALS, admin=ROOT_CREDENTIALS)
        self._context = dict(context or {})
        self._ports = (port, emulator_port)
        self._report = report
        self._held: TextIO | None = None
        self._forwarder: Forwarder | None = None
        self._emulator: Emulator | None = None

    @property
    def url(self) -> str:
        """The local URL, without a path: `http://127.0.0.1:8484`."""
        return self._started(self._forwarder).url

    @property
    def emulator_url(self) -> str:
        """The local AWS: what AWS_ENDPOINT_URL is set to."""
        return self._started(self._emulator).url

    @property
    def emulator_pid(self) -> int | None:
        """The process id of the local AWS while it lives."""
        return self._emulator.pid if self._emulator else None

    @property
    def credentials(self) -> Credentials:
        """Whom the local URL signs as: an IAM user who may only call the API, once IAM is enforced."""
        return self._access.caller

    @property
    def admin_credentials(self) -> Credentials:
        """Who may look into and change everything in the local AWS."""
        return self._access.admin

    @property
    def alive(self) -> bool:
        """Whether the local AWS still runs."""
        return self._emulator is not None and self._emulator.alive

    def start(self) -> None:
        """Bring everything up; returns when the API answers. What was started is ended again if it fails."""
        self._hold_state()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything; the state is saved. May be called twice."""
        if self._forwarder:
            self._forwarder.point_at(None)
        if self._emulator:
            self._emulator.stop()
        if self._forwarder:
            self._forwarder.close()
            self._forwarder = None
        if self._held:
            self.state.status.unlink(missing_ok=True)
            self._held.close()
            self._held = None

    def kill_emulator(self) -> None:
        """End the local AWS without warning, as `kill -9` does."""
        self._started(self._emulator).kill()

    def restart_emulator(self) -> None:
        """End the local AWS, cleanly if it lives, and start it again on its saved state."""
        self._started(self._forwarder).point_at(None)
        emulator = self._started(self._emulator)
        emulator.stop()
        emulator.start(enforce_iam=self.enforce_iam)
        self._open()
        self._write_status("ready")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        self._forwarder = Forwarder(self._ports[0])
        self._write_status("starting")
        with ThreadPoolExecutor(1) as beside, tools_end_on_failure():
            cdk_ready = beside.submit(cdk_command, self.root)
            self._report("the local AWS")
            self._emulator = Emulator(emulator_python(self.root), self.state, self._emulator_port())
            self._write_status("starting")
            deployment = Deployment(self.root, self.state, self._emulator.url, self._context)
            known = deployment.current_outputs()
            access = open_access(self.state.credentials)
            enforce_at_once = self.enforce_iam and known is not None and access is not None
            self._emulator.start(enforce_iam=enforce_at_once)
            self._write_status("starting")
            cdk = cdk_ready.result()
        self.outputs = known or self._deploy(deployment, cdk)
        if self.enforce_iam:
            self._access = access if access and enforce_at_once else self._enforce(deployment)
        self._open()
        self._write_status("ready")
        self._report("ready")

    def _deploy(self, deployment: Deployment, cdk: Path) -> dict[str, str]:
        self._report("the stack (cdk bootstrap, cdk deploy)")
        return deployment.deploy(cdk)

    def _enforce(self, deployment: Deployment) -> Access:
        """The emulator bars the CDK's own roles once it enforces IAM, so it is switched on when the stack stands."""
        self._report("IAM")
        access = create_access(deployment.client("iam"), self.state.credentials)
        emulator = self._started(self._emulator)
        emulator.stop()
        emulator.start(enforce_iam=True)
        return access

    def _open(self) -> None:
        """Point the local URL at the API, and wait until it answers."""
        if "ApiId" not in self.outputs:
            raise SetUpError(f"the stack has no output ApiId; it has {', '.join(sorted(self.outputs)) or 'none'}")
        forwarder, emulator = self._started(self._forwarder), self._started(self._emulator)
        forwarder.point_at(
            Upstream(
                port=emulator.port,
                api_id=self.outputs["ApiId"],
                credentials=self._access.caller,
                region=self.region,
            )
        )
        deadline = time.monotonic() + READY_S
        with Client(forwarder.url, timeout_s=20) as client:
            while True:
                try:
                    client.health()
                    return
                except ClientError as error:
                    if not emulator.alive:
                        raise EmulatorError(f"the local AWS has died:\n{emulator.said()}") from None
                    if time.monotonic() > deadline:
                        raise SetUpError(f"the API does not answer: {error}\n{emulator.said()}") from None
                    time.sleep(0.2)

    def _hold_state(self) -> None:
        self.state.path.mkdir(parents=True, exist_ok=True)
        held = self.state.lock.open("w")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.close()
            who = read_status(self.state)
            by = f" (process {who['pid']}, {who['url']})" if who else ""
            raise StateInUseError(
                f"a local Duetime already runs on {self.state.path}{by}: "
                "end it with `duetime down`, or choose another --state-dir"
            ) from None
        self._held = held

    def _emulator_port(self) -> int:
        wanted = self._ports[1]
        return wanted or (EMULATOR_PORT if self._ports[0] == DEFAULT_PORT and is_free(EMULATOR_PORT) else free_port())

    def _write_status(self, phase: str) -> None:
        status = {
            "pid": os.getpid(),
            "phase": phase,
            "url": self._forwarder.url if self._forwarder else None,
            "emulator_url": self._emulator.url if self._emulator else None,
            "emulator_pid": self.emulator_pid,
            "iam_enforced": self.enforce_iam,
            "outputs": self.outputs,
        }
        draft = self.state.status.with_suffix(".tmp")
        draft.write_text(json.dumps(status, indent=2))
        draft.replace(self.state.status)

    @staticmethod
    def _started(part: Part | None) -> Part:
        if part is None:
            raise SetUpError("the local Duetime is not started")
        return part


def read_status(state: StateDir) -> dict[str, object] | None:
    """What the process that runs on `state` says of itself; None when there is no such thing. It may be long dead."""
    try:
        status = json.loads(state.status.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return status if isinstance(status, dict) else None


def is_held(state: StateDir) -> bool:
    """Whether a living process runs on `state`: the lock ends with its holder, however that ended."""
    if not state.lock.exists():
        return False
    with state.lock.open("w") as probe:
        try:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def is_running(pid: int) -> bool:
    """Whether there is such a process, and more of it than what its parent has yet to collect."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # no Linux
        return True
