"""One attempt, inside the child forked for it: call the handler and leave the outcome on the board. It never returns.

The board is memory shared with the zygote. Unlike a pipe it cannot be closed, filled or held open by the handler.
"""

import contextlib
import json
import mmap
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import NoReturn

from shared.model.instants import from_text
from shared.targets.handler_api import Run, registered
from shared.targets.processes import kernel
from shared.targets.processes.signal_page import HandlerLine
from shared.targets.processes.texts import cut, describe, kinds_of
from shared.targets.processes.values import UnfitValueError, dump, parse

BOARD_BYTES = 64 * 1024  # a result of 16 KiB with every byte escaped, an error and a note
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the handler's end looks like: exactly one of result, error, or note (a result that could not be kept)."""

    outcome: str  # a shared.model.run.Outcome
    result: str | None = None
    error: str | None = None
    note: str | None = None
    reload: bool = False  # it failed because modules could not be imported; they may be by a later try
    kinds: Sequence[str] = ()  # the names of the error's classes, the narrowest first


def run_attempt(frame: bytes, board: mmap.mmap, signals: int, unloaded: Mapping[str, str]) -> NoReturn:
    """Be the process of one attempt. `frame` is the JSON of the call, `signals` the descriptor of its signal page,
    `unloaded` the modules that failed and why.
    """
    pid = os.getpid()
    try:
        _become_ordinary()
        outlook = _call(frame, HandlerLine.over(signals), unloaded)
        if os.getpid() == pid:  # not a fork that the handler made and let return
            write_board(board, outlook)
    except BaseException as error:  # noqa: BLE001  nothing may return into the zygote's own code
        _show(error)
    finally:
        flush_output()
        os._exit(0)


def write_board(board: mmap.mmap, outlook: Outlook) -> None:
    """The length comes last, so that a kill in between leaves no half outcome."""
    data = json.dumps(astuple(outlook)).encode()
    board[_LENGTH_BYTES : _LENGTH_BYTES + len(data)] = data
    board[:_LENGTH_BYTES] = len(data).to_bytes(_LENGTH_BYTES, "big")


def read_board(board: mmap.mmap) -> bytes | None:
    """What `write_board` left, as JSON, or None when the process ended before."""
    length = int.from_bytes(board[:_LENGTH_BYTES], "big")
    return board[_LENGTH_BYTES : _LENGTH_BYTES + length] if 0 < length <= BOARD_BYTES - _LENGTH_BYTES else None


def _become_ordinary() -> None:
    kernel.be_first_to_go()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _call(frame: bytes, line: HandlerLine, unloaded: Mapping[str, str]) -> Outlook:
    call = json.loads(frame)
    name = call["handler"]
    function = registered().get(name)
    if function is None:
        return Outlook("failed", error=_unknown(name, unloaded), reload=bool(unloaded))
    run = Run(
        job_id=call["job_id"],
        scheduled_for=from_text(call["scheduled_for"]),
        attempt=call["attempt"],
        max_attempts=call["max_attempts"],
        idempotency_key=call["idempotency_key"],
        deadline=call["deadline"],
        line=line,
    )
    try:
        value = function(parse(call["payload"]), run)
    except BaseException as error:  # noqa: BLE001  sys.exit and KeyboardInterrupt are the handler's failure as well
        _show(error)
        return Outlook("failed", error=describe(error), kinds=kinds_of(error))
    try:
        return Outlook("succeeded", result=dump(value))
    except UnfitValueError as error:
        return Outlook("succeeded", note=cut(str(error)))


def _unknown(name: str, unloaded: Mapping[str, str]) -> str:
    known = ", ".join(sorted(registered())) or "none"
    if unloaded:
        failures = "; ".join(f"{module}: {error}" for module, error in unloaded.items())
        return cut(f"handler {name!r} is not loaded; could not be imported: {failures}; known: {known}")
    return cut(f"handler {name!r} is not known; known: {known}")


def _show(error: BaseException) -> None:
    with contextlib.suppress(BaseException):  # the handler may have closed standard error
        traceback.print_exception(error)


def flush_output() -> None:
    """Write out what Python and C libraries hold back of the two outputs."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # the handler may have closed or replaced it
            stream.flush()
    kernel.flush_c_streams()
