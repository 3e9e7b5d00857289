"""The target kind `python`: a handler, called in a process of its own. It never runs user code in the executor's.

That process is a fork of the zygote (docs/decisions/0004-handler-processes.md). So a timeout really ends a handler,
and a handler that takes its process down ends one attempt, not the batch.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.model.call import Call
from shared.model.instants import to_text
from shared.model.run import Outcome, Result
from shared.targets.processes import kernel
from shared.targets.processes.handle import Zygote
from shared.targets.processes.texts import cut

LOAD_LIMIT_S = 60.0  # for importing one module of the handlers
RELOAD_AFTER_S = 10.0  # modules that could not be imported are tried again at most this often
_SLICE_S = 0.05  # how soon `stop` is seen
_END_LIMIT_S = 5.0  # for a killed attempt to be gone
_RESTARTS = 100  # zygotes that one attempt may see die before it gives up: one for each broken module


@dataclass(frozen=True, slots=True)
class _Ended:
    """How the conversation about an attempt ended."""

    timed_out: bool = False
    stopped: bool = False
    zygote_lost: bool = False
    exit_code: int = 0
    board: tuple[str, str | None, str | None, str | None, bool] | None = None


class PythonTarget:
    """The handlers of the package `directory`; its parent is on the import path of the handlers. A TargetCaller.

    The handlers begin to load in the background with the first of `start`, `load` and `call`.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._skip: dict[str, str] = {}  # modules whose import ended or blocked a zygote, and how

    def start(self) -> None:
        """Begin to load the handlers, without waiting for it."""
        self._current()

    def load(self) -> None:
        """Load the handlers and wait for it, so that no attempt has to. Never raises: attempts say what is wrong."""
        self._loaded(threading.Event())

    def close(self) -> None:
        """End the handlers' processes, attempts that are going on included."""
        with self._lock:
            zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()

    def call(self, call: Call, stop: threading.Event) -> Result:
        """Call the handler that the target names, in a new process. See TargetCaller."""
        handler = call.target.params.get("handler")
        if not isinstance(handler, str):
            return Result(outcome=Outcome.FAILED, error=cut(f"target.handler must be a text, not {handler!r}"))
        for _ in range(_RESTARTS):
            if stop.is_set():
                return _cancelled()
            zygote = self._loaded(stop)
            if isinstance(zygote, Result):
                return zygote
            try:
                connection = zygote.begin()
            except OSError:  # it ended since: nothing was started, so the next one may have it
                zygote.ended.wait(_END_LIMIT_S)
                continue
            try:
                with connection:
                    ended = _Attempt(connection, time.monotonic() + call.timeout_s, stop).run(_frame(call, handler))
            finally:
                zygote.done()
            return self._result(call, zygote, ended)
        return Result(outcome=Outcome.FAILED, error="the process that starts handlers ended again and again")

    def _current(self) -> Zygote:
        with self._lock:
            if self._zygote is None or self._zygote.ended.is_set():
                self._zygote = Zygote(self._directory, self._skip)
            return self._zygote

    def _loaded(self, stop: threading.Event) -> Zygote | Result:
        """The zygote once it has imported everything; a module that ends or blocks it is left out of the next one."""
        for _ in range(_RESTARTS):
            zygote = self._current()
            module, since = zygote.loading, time.monotonic()
            while not zygote.loaded.wait(_SLICE_S):
                if stop.is_set():
                    return _cancelled()
                if zygote.loading != module:
                    module, since = zygote.loading, time.monotonic()
                if zygote.ended.is_set():
                    break
                if time.monotonic() - since > LOAD_LIMIT_S:
                    self._leave_out(zygote, f"its import did not finish within {LOAD_LIMIT_S:g} s")
                    zygote.kill()
                    zygote.ended.wait(_END_LIMIT_S)
                    break
            if zygote.loaded.is_set():
                return zygote
            if zygote.loading is None:
                error = f"the process that starts handlers {zygote.ending()} before it could load them"
                return Result(outcome=Outcome.FAILED, error=error)
            self._leave_out(zygote, f"its import ended the process, which {zygote.ending()}")
        return Result(outcome=Outcome.FAILED, error="the handlers cannot be loaded")

    def _leave_out(self, zygote: Zygote, why: str) -> None:
        with self._lock:
            if zygote.loading is not None:
                self._skip.setdefault(zygote.loading, why)

    def _retry_imports(self, zygote: Zygote) -> None:
        """What failed to import may import later (a network, a secret): try a new zygote, but not for each attempt."""
        with self._lock:
            if self._zygote is not zygote or time.monotonic() - zygote.started_at < RELOAD_AFTER_S:
                return
            self._zygote = None
            self._skip.clear()
        zygote.retire()

    def _result(self, call: Call, zygote: Zygote, ended: _Ended) -> Result:
        if ended.board is not None:  # it had finished, even if only just
            outcome, result, error, note, reload = ended.board
            if reload:
                self._retry_imports(zygote)
            return Result(outcome=Outcome(outcome), result=result, error=error, note=note)
        if ended.timed_out:
            return Result(outcome=Outcome.TIMED_OUT, error=f"did not finish within {call.timeout_s:g} s")
        if ended.stopped:
            return _cancelled()
        if ended.zygote_lost:
            zygote.ended.wait(_END_LIMIT_S)
            how = zygote.ending() if zygote.ended.is_set() else "is out of reach"
            return Result(outcome=Outcome.LOST, error=f"the process that starts handlers {how} during the attempt")
        how = kernel.ending(ended.exit_code)
        return Result(outcome=Outcome.LOST, error=f"the process {how} before the handler returned")


class _Attempt:
    """The executor's side of one attempt: send the call, wait for what comes first of answer, timeout and stop."""

    def __init__(self, connection: socket.socket, deadline: float, stop: threading.Event) -> None:
        self._connection = connection
        self._deadline = deadline
        self._stop = stop
        self._pid: int | None = None
        self._buffer = b""
        self._poller = select.poll()
        self._poller.register(connection, select.POLLIN)

    def run(self, frame: Mapping[str, object]) -> _Ended:
        data = json.dumps({**frame, "deadline": self._deadline}).encode()
        try:
            self._connection.settimeout(max(0.001, self._deadline - time.monotonic()))
            self._connection.sendall(len(data).to_bytes(4, "big") + data)
            ended = self._wait()
        except TimeoutError:
            ended = _Ended(timed_out=True)
        except OSError:
            return self._lost()
        if ended is None:
            return self._lost()
        return self._end(ended) if ended.timed_out or ended.stopped else ended

    def _wait(self) -> _Ended | None:
        """None when the zygote is gone."""
        while True:
            remaining_s = self._deadline - time.monotonic()
            if remaining_s <= 0:
                return _Ended(timed_out=True)
            if self._stop.is_set():
                return _Ended(stopped=True)
            if self._poller.poll(1000 * min(remaining_s, _SLICE_S)):
                ended = self._read()
                if ended is None or ended.board is not None or ended.exit_code != _GOING_ON:
                    return ended

    def _read(self) -> _Ended | None:
        """What the zygote says next: `exit_code` is _GOING_ON while the attempt is; None at the end of file."""
        data = self._connection.recv(1 << 17)
        if not data:
            return None
        self._buffer += data
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            said = json.loads(line)
            if "pid" in said:
                self._pid = said["pid"]
            else:
                board = said["board"]
                return _Ended(exit_code=said["exit"], board=tuple(board) if board else None)
        return _Ended(exit_code=_GOING_ON)

    def _end(self, why: _Ended) -> _Ended:
        """Have the process killed and wait until it is gone; an outcome that it had reached by then counts."""
        limit = time.monotonic() + _END_LIMIT_S
        try:
            self._connection.shutdown(socket.SHUT_WR)
            while self._poller.poll(1000 * max(0.0, limit - time.monotonic())):
                ended = self._read()
                if ended is None:
                    break
                if ended.exit_code != _GOING_ON:
                    return ended if ended.board is not None else why
        except OSError:
            pass
        if self._pid is not None:  # the zygote is gone or stuck
            kernel.kill_group(self._pid)
        return why

    def _lost(self) -> _Ended:
        """The zygote is gone. Its children went with it; what they had started goes now."""
        if self._pid is not None:
            kernel.kill_group(self._pid)
        return _Ended(zygote_lost=True)


_GOING_ON = 1 << 30  # no exit code


def _frame(call: Call, handler: str) -> dict[str, object]:
    return {
        "handler": handler,
        "job_id": call.job_id,
        "scheduled_for": to_text(call.scheduled_for),
        "attempt": call.attempt,
        "max_attempts": call.max_attempts,
        "idempotency_key": call.idempotency_key,
        "payload": call.payload,
    }


def _cancelled() -> Result:
    return Result(outcome=Outcome.CANCELLED, error="ended because the run was cancelled")
