"""The target kind `python`: a handler, called in a process of its own. It never runs user code in the executor's.

That process is a fork of the zygote (docs/decisions/0004-handler-processes.md). So a timeout really ends a handler,
and a handler that takes its process down ends one attempt, not the batch.
"""

import contextlib
import threading
import time
from pathlib import Path

from shared.model.call import Call
from shared.model.instants import to_text
from shared.model.run import Outcome, Result
from shared.targets.processes import kernel
from shared.targets.processes.conversation import Answer, Conversation, End
from shared.targets.processes.handle import Zygote
from shared.targets.processes.signal_page import SignalPage
from shared.targets.processes.texts import cut
from shared.targets.target import Signals

LOAD_LIMIT_S = 60.0  # for importing one module of the handlers
RELOAD_AFTER_S = 10.0  # modules that could not be imported are tried again at most this often
_SLICE_S = 0.05  # how soon a signal is seen
_END_LIMIT_S = 5.0  # for a killed zygote to be gone
_TRIES = 10  # zygotes that one attempt may find dead
_RESTARTS = 100  # zygotes that one attempt may see die while they load: one for each broken module


class PythonTarget:
    """The handlers of the package `directory`; its parent is on the import path of the handlers. A TargetCaller.

    Nothing is started before `start`, `load` or the first `call`.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._skip: dict[str, str] = {}  # modules whose import ended or blocked a zygote, and how

    def start(self) -> None:
        """Begin to load the handlers, without waiting for it. Never raises: attempts say what is wrong."""
        with contextlib.suppress(OSError):
            self._current()

    def load(self) -> None:
        """Load the handlers and wait for it, so that no attempt has to. Never raises: attempts say what is wrong."""
        self._loaded(Signals())

    def close(self) -> None:
        """End the handlers' processes, attempts that are going on included."""
        with self._lock:
            zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()

    def call(self, call: Call, signals: Signals) -> Result:
        """Call the handler that the target names, in a new process. See TargetCaller."""
        handler = call.target.params.get("handler")
        if not isinstance(handler, str):
            return Result(outcome=Outcome.FAILED, error=cut(f"target.handler must be a text, not {handler!r}"))
        try:
            page = SignalPage()
        except OSError as error:  # too many files, or no memory
            return _lost(cut(f"no process could be started: {error}"))
        with page:
            return self._attempt(call, handler, signals, page)

    def _attempt(self, call: Call, handler: str, signals: Signals, page: SignalPage) -> Result:
        for _ in range(_TRIES):
            zygote = self._loaded(signals)
            if isinstance(zygote, Result):
                return zygote
            end, answer = _converse(zygote, call, handler, signals, page)
            if end is not End.NOT_BEGUN:
                return self._result(call, zygote, end, answer)
            zygote.ended.wait(_END_LIMIT_S)  # no handler was called, so the next zygote may have the attempt
        return _lost("the process that starts handlers could not be reached, however often it was started anew")

    def _current(self) -> Zygote:
        with self._lock:
            if self._zygote is None or self._zygote.ended.is_set():
                self._zygote = Zygote(self._directory, self._skip)
            return self._zygote

    def _loaded(self, signals: Signals) -> Zygote | Result:
        """The zygote once it has imported everything; a module that ends or blocks it is left out of the next one."""
        for _ in range(_RESTARTS):
            if _is_off(signals):
                return _cancelled()
            try:
                zygote = self._current()
            except OSError as error:  # too many processes, or no memory for one: another attempt may be luckier
                return _lost(cut(f"the process that starts handlers could not be started: {error}"))
            module, since = zygote.loading, time.monotonic()
            while not zygote.loaded.wait(_SLICE_S):
                if _is_off(signals):
                    return _cancelled()
                if zygote.loading != module:
                    module, since = zygote.loading, time.monotonic()
                if zygote.ended.is_set():
                    break
                if time.monotonic() - since > LOAD_LIMIT_S:
                    self._leave_out(zygote, f"its import did not finish within {LOAD_LIMIT_S:g} s")
                    zygote.kill()
                    break
            if zygote.loaded.is_set():
                return zygote
            if zygote.loading is None:
                why = f"the process that starts handlers {zygote.ending()} before it could load them"
                return Result(outcome=Outcome.FAILED, error=why)
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

    def _result(self, call: Call, zygote: Zygote, end: End, answer: Answer | None) -> Result:
        match end:
            case End.TIMED_OUT:
                return Result(outcome=Outcome.TIMED_OUT, error=f"did not finish within {call.timeout_s:g} s")
            case End.STOPPED:
                return _cancelled()
            case End.ZYGOTE_STUCK:
                zygote.kill()
                return _lost("the process that starts handlers did not respond and was ended")
            case End.ZYGOTE_LOST:
                zygote.ended.wait(_END_LIMIT_S)
                return _lost(f"the process that starts handlers {zygote.ending()} during the attempt")
        assert answer is not None
        if answer.board is None:
            return _lost(f"the process {kernel.ending(answer.exit_code)} before the handler returned")
        outcome, result, error, note, reload, kinds = answer.board
        if reload:
            self._retry_imports(zygote)
        return Result(outcome=Outcome(outcome), result=result, error=error, error_kinds=tuple(kinds), note=note)


def _is_off(signals: Signals) -> bool:
    """Whether there is no need to call the handler any more."""
    return signals.stop.is_set() or signals.cancelled.is_set()


def _converse(
    zygote: Zygote, call: Call, handler: str, signals: Signals, page: SignalPage
) -> tuple[End, Answer | None]:
    try:
        connection = zygote.begin(page.fd)
    except OSError:
        return End.NOT_BEGUN, None
    try:
        with connection:
            conversation = Conversation(connection, time.monotonic() + call.timeout_s, signals, page)
            return conversation.hold(_as_frame(call, handler)), conversation.answer
    finally:
        zygote.done()


def _as_frame(call: Call, handler: str) -> dict[str, object]:
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


def _lost(error: str) -> Result:
    return Result(outcome=Outcome.LOST, error=error)
