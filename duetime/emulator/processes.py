"""The processes that the functions run in, to their end. It never ends one that does not descend from this process."""

import contextlib
import ctypes
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

END_S = 8.0  # for all of them to be gone
BY_THEMSELVES_S = 0.5  # for what the functions started to see that they are gone
_PR_SET_CHILD_SUBREAPER = 36

# A worker in a long call does not read its standard input, so a thread of it waits for that to close: for the emulator
# to end, however it ends. What the function started sees in turn that the worker is gone.
_GUARD = """
def _duetime_end_with_the_emulator():
    import os, select, threading

    def wait():
        closed = select.poll()
        closed.register(0, 0)
        while not closed.poll():
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True, name="duetime-emulator").start()

_duetime_end_with_the_emulator()
"""


class Processes:
    """The one way to start a function's process, until `end` closes it. `runtime` is ministack's module of workers."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._state = threading.Lock()
        self._starting = 0
        self._closed = False
        self._spawn = runtime.Worker._spawn
        runtime.Worker._spawn = lambda worker: self._start(worker)  # noqa: PLW0108 — only a function becomes a method
        runtime._PYTHON_WORKER_SCRIPT = _GUARD + runtime._PYTHON_WORKER_SCRIPT

    def _start(self, worker: Any) -> None:
        with self._state:
            if self._closed:
                raise RuntimeError("the local AWS is ending: no process of a function is started any more")
            self._starting += 1
        try:
            self._spawn(worker)
        finally:
            with self._state:
                self._starting -= 1

    def end(self) -> None:
        """Kill them all and what they have started, and wait until they are gone. None is started from now on."""
        with self._state:
            self._closed = True
        _adopt_orphans()
        begun = time.monotonic()
        self._runtime.reset()
        while time.monotonic() - begun < END_S:
            left = _children()
            with self._state:
                if not left and not self._starting:
                    return
            if self._starting or time.monotonic() - begun > BY_THEMSELVES_S:
                for child in left:
                    _kill(child)
            for child in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)
            time.sleep(0.02)


def _adopt_orphans() -> None:
    """Become the parent of what the functions started when they end, so that its end can be seen. On Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> set[int]:
    """Process ids of this process's children; none where the kernel does not tell."""
    found: set[int] = set()
    for tasks in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found |= set(map(int, tasks.read_bytes().split()))
    return found


def _kill(child: int) -> None:
    """The child, and the group it leads if it does."""
    with contextlib.suppress(OSError):
        if os.getpgid(child) == child:
            os.killpg(child, signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
