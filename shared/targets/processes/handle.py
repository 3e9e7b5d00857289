"""The executor's hold on a zygote: start it, know its state, hand it attempts, end it. It never starts a second one."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from shared.targets.processes import kernel

_BOOT = (
    "import json, sys; path, fd, directory, skip = json.loads(sys.argv[1]); sys.path[:] = path; "
    "sys.argv[:] = ['handlers']; from shared.targets.processes.zygote import main; main(fd, directory, skip)"
)

_END_LIMIT_S = 5.0


class Zygote:
    """One zygote process. All methods may be called from any thread. Raises OSError if it cannot be started."""

    def __init__(self, directory: Path, skip: Mapping[str, str]) -> None:
        self.started_at = time.monotonic()
        self.loading: str | None = None  # the module that is being imported
        self.loaded = threading.Event()
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._attempts = 0
        self._retired = False
        self._control, theirs = socket.socketpair()
        with theirs:
            boot = json.dumps([_import_path(), theirs.fileno(), str(directory), dict(skip)])
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, boot],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # the executor's own standard output may be a protocol
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError:
                self._control.close()
                raise
        threading.Thread(target=self._watch, name="handlers-zygote", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ending(self) -> str:
        """How it ended: `exited with code 1`."""
        return kernel.ending(self._process.returncode) if self.ended.is_set() else "could not be ended"

    def begin(self, signals: int) -> socket.socket:
        """Open an attempt, whose signal page is the descriptor `signals`. Raises OSError if the zygote is gone; then
        nothing of it was started.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                with self._lock:
                    socket.send_fds(self._control, [b"a"], [theirs.fileno(), signals])
                    self._attempts += 1
            except OSError:
                ours.close()
                raise
        return ours

    def done(self) -> None:
        """The attempt that `begin` opened is over."""
        with self._lock:
            self._attempts -= 1
            self._close_if_idle()

    def retire(self) -> None:
        """End it as soon as the attempts going on are over."""
        with self._lock:
            self._retired = True
            self._close_if_idle()

    def kill(self) -> None:
        """End it at once, with every attempt in it, and wait for that."""
        self._process.kill()
        self.ended.wait(_END_LIMIT_S)

    def close(self) -> None:
        """Have it end its attempts and itself, and wait for that."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        if not self.ended.wait(_END_LIMIT_S):
            self.kill()

    def _close_if_idle(self) -> None:
        if self._retired and not self._attempts:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)

    def _watch(self) -> None:
        """Hear what the zygote says while it loads, and see its end."""
        with contextlib.suppress(OSError), self._control.makefile("rb") as lines:
            for line in lines:
                said = json.loads(line)
                if "loading" in said:
                    self.loading = str(said["loading"])
                else:
                    self.loading = None
                    self.loaded.set()
        self._process.wait()
        self.ended.set()
        with self._lock:
            self._control.close()


def _import_path() -> list[str]:
    return [os.fspath(entry) for entry in sys.path if isinstance(entry, str)]
