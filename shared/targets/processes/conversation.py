"""The executor's side of one attempt: send the call, carry signals, wait for its end or end it. It never retries."""

import json
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from shared.targets.processes import kernel
from shared.targets.processes.signal_page import SignalPage
from shared.targets.target import Signals

LENGTH_BYTES = 4
_SLICE_S = 0.05  # how soon a signal is seen
_END_LIMIT_S = 5.0  # for a killed attempt to be gone
_CHUNK = 1 << 17


class End(Enum):
    """Why the conversation ended."""

    ANSWERED = "answered"  # the process has ended; the answer tells how
    TIMED_OUT = "timed out"
    STOPPED = "stopped"
    NOT_BEGUN = "not begun"  # the zygote ended, and had not begun to start the process
    ZYGOTE_LOST = "zygote lost"  # the zygote ended, and the attempt with it
    ZYGOTE_STUCK = "zygote stuck"  # it did not end the attempt when told to


@dataclass(frozen=True, slots=True)
class Answer:
    """What the zygote says once the process has ended."""

    exit_code: int  # negative: the number of the signal
    board: tuple[str, str | None, str | None, str | None, bool, list[str]] | None  # an Outlook's; None: ended before


class Conversation:
    """About one attempt, over `connection`; `deadline` is on time.monotonic()."""

    def __init__(self, connection: socket.socket, deadline: float, signals: Signals, page: SignalPage) -> None:
        self.answer: Answer | None = None
        self._connection = connection
        self._deadline = deadline
        self._signals = signals
        self._page = page
        self._begun = False
        self._pid: int | None = None
        self._buffer = b""
        self._poller = select.poll()
        self._poller.register(connection, select.POLLIN)

    def hold(self, call: Mapping[str, object]) -> End:
        """The whole conversation. When it is over, so is the process; `answer` is set if it ended by itself."""
        data = json.dumps({**call, "deadline": self._deadline}).encode()
        try:
            self._connection.settimeout(max(0.0, self._deadline - time.monotonic()) + _END_LIMIT_S)
            self._connection.sendall(len(data).to_bytes(LENGTH_BYTES, "big") + data)
            end = self._wait()
            if end is not End.ANSWERED:
                end = self._have_it_ended(end)
        except TimeoutError:  # the zygote did not take the call: there is no process
            end = End.ZYGOTE_STUCK
        except OSError:
            end = End.ZYGOTE_LOST if self._begun else End.NOT_BEGUN
        if end in (End.ZYGOTE_LOST, End.ZYGOTE_STUCK) and self._pid is not None:
            kernel.kill_group(self._pid)  # what the handler had started does not end with the zygote
        self._carry()
        return end

    def _wait(self) -> End:
        while True:
            remaining_s = self._deadline - time.monotonic()
            if remaining_s <= 0:
                return End.TIMED_OUT
            self._carry()
            if self._signals.stop.is_set():
                return End.STOPPED
            if self._poller.poll(1000 * min(remaining_s, _SLICE_S)):
                self._hear()
                if self.answer is not None:
                    return End.ANSWERED

    def _carry(self) -> None:
        """Signals from the executor to the handler, and back."""
        if self._signals.cancelled.is_set():
            self._page.cancel()
        self._signals.told = self._page.is_told()
        self._signals.progress = self._page.progress() or self._signals.progress

    def _have_it_ended(self, why: End) -> End:
        """An outcome that the process had reached before it could be killed counts: it is what happened."""
        limit = time.monotonic() + _END_LIMIT_S
        self._connection.shutdown(socket.SHUT_WR)
        while self.answer is None:
            if not self._poller.poll(1000 * max(0.0, limit - time.monotonic())):
                return End.ZYGOTE_STUCK
            self._hear()
        return End.ANSWERED if self.answer.board is not None else why

    def _hear(self) -> None:
        data = self._connection.recv(_CHUNK)
        if not data:
            raise ConnectionResetError
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "begun" in said:
                self._begun = True
            elif "pid" in said:
                self._pid = said["pid"]
            else:
                board = said["board"]
                self.answer = Answer(said["exit"], tuple(board) if board else None)
