"""The process that loads the handlers once and forks a child for each attempt. It never runs a handler itself.

It speaks with the executor over sockets:

control  → one byte with a socket and a signal page attached: an attempt.
         ← lines of JSON: {"loading": module} …, {"ready": true}
attempt  → the length of the call, the call (JSON); end of file: end the attempt.
         ← lines of JSON: {"begun": true}, {"pid": 123}, then {"exit": code, "board": […] or null}
End of file on control: the executor is gone, so everything ends.
"""

import contextlib
import faulthandler
import fcntl
import gc
import importlib
import json
import mmap
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from shared.targets.handler_api import forget_failed_modules
from shared.targets.names import HandlerSourceError, handler_modules
from shared.targets.processes import kernel
from shared.targets.processes.attempt import BOARD_BYTES, flush_output, read_board, run_attempt
from shared.targets.processes.conversation import LENGTH_BYTES
from shared.targets.processes.texts import describe

_CHUNK = 1 << 20
_DESCRIPTORS = 2  # that come with an attempt


def main(control_fd: int, directory: str, skip: Mapping[str, str]) -> NoReturn:
    """Load the handlers under `directory`, all but the modules in `skip` (module → why), and serve until the end."""
    control = socket.socket(fileno=control_fd)
    _end_with(control)
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    with contextlib.suppress(OSError, ValueError):
        faulthandler.enable()
    kernel.no_core_dumps()
    unloaded = {**skip, **load(Path(directory), skip, lambda name: _say(control, {"loading": name}))}
    flush_output()  # or every child would write what is left in the buffers
    gc.collect()
    gc.freeze()  # keeps the children from copying pages just to count references
    zygote = Zygote(control, unloaded)
    fcntl.fcntl(control, fcntl.F_SETFL, os.O_NONBLOCK)  # and without a signal: the loop looks at it now
    _say(control, {"ready": True})
    zygote.serve()


def load(directory: Path, skip: Mapping[str, str], announce: Callable[[str], None]) -> dict[str, str]:
    """Import every module of the package `directory`; returns those that raised, with what they raised."""
    if str(directory.parent) not in sys.path:
        sys.path.append(str(directory.parent))
    failed: dict[str, str] = {}
    try:
        modules = handler_modules(directory)
    except HandlerSourceError as error:
        return {directory.name: str(error)}
    for name in modules:
        if name in skip:
            continue
        announce(name)
        try:
            _check_place(name, importlib.import_module(name), modules[name])
        except BaseException as error:  # noqa: BLE001  also sys.exit at import: the other modules still work
            traceback.print_exc()
            failed[name] = describe(error)
            forget_failed_modules()
            if name == directory.name:
                break  # its modules cannot be imported either, for the same reason
    return failed


def _check_place(name: str, module: ModuleType, path: Path) -> None:
    found = module.__file__
    if found is None or not os.path.samefile(found, path):
        raise ImportError(f"{name} was imported from {found}, not from {path}: another package has the same name")


def _end_with(control: socket.socket) -> None:
    """While modules are being imported nobody looks at `control`: have the kernel end us when its other side closes."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(control, fcntl.F_SETFL, fcntl.FASYNC)
    if select.select([control], [], [], 0)[0]:
        os._exit(0)


def _say(connection: socket.socket, what: Mapping[str, object]) -> None:
    connection.sendall(json.dumps(what).encode() + b"\n")


class _Attempt:
    """One attempt as the zygote sees it: first a call that comes in, then a process."""

    def __init__(self, connection: socket.socket, signals: int) -> None:
        self.connection = connection
        self.signals: int | None = signals  # the descriptor of its signal page, until its process has it
        self.received = bytearray()
        self.pid: int | None = None
        self.board: mmap.mmap | None = None

    def frame(self) -> bytes | None:
        """The call, once all of it is here."""
        length = int.from_bytes(self.received[:LENGTH_BYTES], "big")
        whole = LENGTH_BYTES + length
        return bytes(self.received[LENGTH_BYTES:whole]) if len(self.received) >= max(whole, LENGTH_BYTES + 1) else None

    def close_signals(self) -> None:
        if self.signals is not None:
            os.close(self.signals)
            self.signals = None

    def close(self) -> None:
        self.connection.close()
        self.close_signals()
        if self.board is not None:
            self.board.close()


class Zygote:
    """The loop: one thread, never blocked, woken by sockets and by the end of children."""

    def __init__(self, control: socket.socket, unloaded: Mapping[str, str]) -> None:
        self._control = control
        self._unloaded = unloaded
        self._poller = select.poll()
        self._by_fd: dict[int, _Attempt] = {}
        self._by_pid: dict[int, _Attempt] = {}
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        kernel.adopt_orphans()
        self._own_children = kernel.children()  # started by the user's imports, and theirs to end

    def serve(self) -> NoReturn:
        self._poller.register(self._control, select.POLLIN)
        self._poller.register(self._woken, select.POLLIN)
        while True:
            for fd, _events in self._poller.poll():
                if fd == self._control.fileno():
                    self._accept()
                elif fd == self._woken.fileno():
                    self._reap()
                elif fd in self._by_fd:  # not closed by one of the events before
                    self._hear(self._by_fd[fd])

    def _accept(self) -> None:
        try:
            data, fds, _flags, _address = socket.recv_fds(self._control, 1, _DESCRIPTORS)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data, fds = b"", []
        if not data:
            self._end()
        if len(fds) < _DESCRIPTORS:  # there is no room for more; the executor sees that its own end is closed
            for fd in fds:
                os.close(fd)
            return
        connection, signals = fds
        attempt = _Attempt(socket.socket(fileno=connection), signals)
        attempt.connection.setblocking(False)
        self._by_fd[connection] = attempt
        self._poller.register(connection, select.POLLIN)

    def _hear(self, attempt: _Attempt) -> None:
        try:
            data = attempt.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._give_up(attempt)
            return
        attempt.received += data
        frame = attempt.frame()
        if frame is not None and attempt.pid is None:
            self._fork(attempt, frame)

    def _give_up(self, attempt: _Attempt) -> None:
        """The executor wants this attempt to end; its answer follows when the process is gone."""
        self._poller.unregister(attempt.connection)
        if attempt.pid is not None:
            kernel.kill_group(attempt.pid)
        else:
            self._forget(attempt)

    def _fork(self, attempt: _Attempt, frame: bytes) -> None:
        attempt.received.clear()
        zygote = os.getpid()
        self._answer(attempt, b'{"begun": true}\n')  # without it the executor knows that no handler was called
        try:
            attempt.board = mmap.mmap(-1, BOARD_BYTES)
            pid = os.fork()
        except OSError as error:  # no memory, or too many processes: this attempt's bad luck, not everybody's end
            board = json.dumps(["lost", None, f"no process could be started: {describe(error)}", None, False, []])
            self._answer(attempt, b'{"exit": 0, "board": %s}\n' % board.encode())
            self._forget(attempt)
            return
        if pid == 0:
            self._be_child(zygote, frame, attempt)
        attempt.close_signals()
        with contextlib.suppress(OSError):  # the child may have done it, or may be gone
            os.setpgid(pid, pid)
        attempt.pid = pid
        self._by_pid[pid] = attempt
        self._answer(attempt, b'{"pid": %d}\n' % pid)

    def _be_child(self, zygote: int, frame: bytes, attempt: _Attempt) -> NoReturn:
        try:
            kernel.end_with_parent()
            if os.getppid() != zygote:  # it ended before the line above could hold
                os._exit(0)
            os.setpgid(0, 0)
            for connection in (self._control, self._woken, self._waker, *(a.connection for a in self._by_fd.values())):
                connection.close()
            for other in self._by_fd.values():
                if other is not attempt:
                    other.close_signals()
            assert attempt.board is not None
            assert attempt.signals is not None
            run_attempt(frame, attempt.board, attempt.signals, self._unloaded)
        finally:
            os._exit(70)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if ended is None:
                break
            attempt = self._by_pid.pop(ended.si_pid, None)
            if attempt is not None:
                kernel.kill_group(ended.si_pid)  # before its number is free to be another's
            _pid, status = os.waitpid(ended.si_pid, 0)
            if attempt is not None:
                self._finish(attempt, os.waitstatus_to_exitcode(status))
        if not self._by_pid:
            self._sweep()

    def _finish(self, attempt: _Attempt, exit_code: int) -> None:
        assert attempt.board is not None
        board = read_board(attempt.board)
        self._answer(attempt, b'{"exit": %d, "board": %s}\n' % (exit_code, board or b"null"))
        self._forget(attempt)

    def _answer(self, attempt: _Attempt, line: bytes) -> None:
        """At most 64 KiB an attempt: it fits into the socket's buffer, so this cannot block."""
        with contextlib.suppress(OSError):  # the executor has given the attempt up
            attempt.connection.sendall(line)

    def _forget(self, attempt: _Attempt) -> None:
        fd = attempt.connection.fileno()
        with contextlib.suppress(KeyError):
            self._poller.unregister(fd)
        del self._by_fd[fd]
        attempt.close()

    def _sweep(self) -> None:
        """No attempt is going on: end whatever earlier ones left behind as daemons."""
        for pid in kernel.children() - self._own_children:
            kernel.kill_group(pid)

    def _end(self) -> NoReturn:
        for pid in self._by_pid:
            kernel.kill_group(pid)
        while left := kernel.children():  # what a handler had started becomes ours when the handler is gone
            for pid in left:
                kernel.kill_group(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)
        os._exit(0)
