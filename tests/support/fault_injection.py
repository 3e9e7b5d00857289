"""A plan of several faults at once: calls that fail before or after their effect, batches refused in part.

It breaks no call that is not named, and is an error itself when a fault never struck. For a single crash see faults.

    with fault_injection.injected() as broken:
        broken.before("dynamodb:UpdateItem", throttled(), nth=2)     # the second one has no effect
        broken.after("sqs:SendMessageBatch", cut_off())              # sent, but the answer is lost
        broken.after("*", CrashError(), nth=7)                       # the process dies after its seventh call
        broken.partly("sqs:SendMessageBatch", [3])                   # entry 3 comes back as Failed
"""

import contextlib
import fnmatch
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support import calls, fault_batches
from tests.support.calls import Call, Observer


def throttled(code: str = "ThrottlingException", status: int = 400) -> ClientError:
    """As botocore raises it when its own retries are used up."""
    return refused(code, "Rate of requests exceeds the allowed throughput.", status)


def refused(code: str, message: str = "injected by the test", status: int = 400) -> ClientError:
    """An error answer of the service."""
    error: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(error, "Injected")


def cut_off() -> ReadTimeoutError:
    """The connection broke: the caller cannot know whether it was done."""
    return ReadTimeoutError(endpoint_url="injected by the test")


def _always(_: Call) -> bool:
    return True


@dataclass
class Fault:
    """One thing that will go wrong. `nth` counts the calls that match, from 1; it strikes for `times` of them on."""

    pattern: str
    nth: int
    times: int
    when: Callable[[Call], bool]
    error: BaseException | None = None
    after: bool = False
    batch: fault_batches.Partial | None = None
    matched: int = 0
    struck: int = 0

    def strikes(self, call: Call) -> bool:
        if not fnmatch.fnmatchcase(call.name, self.pattern) or not self.when(call):
            return False
        self.matched += 1
        if not self.nth <= self.matched < self.nth + self.times:
            return False
        self.struck += 1
        return True


@dataclass
class Faults(Observer):
    """The faults of one block, over all clients and threads."""

    order = calls.FAULTS
    faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def before(
        self,
        pattern: str,
        error: BaseException,
        *,
        nth: int = 1,
        times: int = 1,
        when: Callable[[Call], bool] = _always,
    ) -> Fault:
        """`error` in place of the call: it has no effect."""
        return self._add(Fault(pattern, nth, times, when, error))

    def after(
        self,
        pattern: str,
        error: BaseException,
        *,
        nth: int = 1,
        times: int = 1,
        when: Callable[[Call], bool] = _always,
    ) -> Fault:
        """`error` in place of the answer: it took effect."""
        return self._add(Fault(pattern, nth, times, when, error, after=True))

    def partly(
        self,
        pattern: str,
        entries: Sequence[int],
        *,
        nth: int = 1,
        times: int = 1,
        when: Callable[[Call], bool] = _always,
        code: str | None = None,
        done: bool = False,
        silent: bool = False,
    ) -> Fault:
        """Refuse these entries (from 0) of a batch inside an answer that is otherwise a success.

        `code` is the entry's or statement's error; with `done` the entry took effect all the same; with `silent` the
        answer does not mention it at all. UnprocessedItems and UnprocessedKeys carry no code.
        """
        batch = fault_batches.Partial(tuple(entries), code, done, silent)
        return self._add(Fault(pattern, nth, times, when, batch=batch))

    def _add(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault

    def on_request(self, call: Call) -> None:
        with self._lock:
            struck = [fault for fault in self.faults if fault.strikes(call)]
        call.notes["faults"] = struck
        for fault in struck:
            if fault.batch:
                fault_batches.withhold(fault.batch, call)

    def answer(self, call: Call) -> dict[str, Any] | None:
        for fault in call.notes.get("faults", []):
            if fault.error is not None and not fault.after:
                raise fault.error
        return fault_batches.answer_when_nothing_is_left(call)

    def on_answer(self, call: Call) -> None:
        if call.status == 200:
            fault_batches.report(call)
        for fault in call.notes.get("faults", []):
            if fault.error is not None and fault.after:
                raise fault.error


@contextlib.contextmanager
def injected() -> Iterator[Faults]:
    """Faults for the block. At its end each must have struck, or the test has shown nothing."""
    faults = Faults()
    with calls.observing(faults):
        yield faults
    for fault in faults.faults:
        assert fault.struck, f"{fault.pattern}, number {fault.nth}, never came: {fault.matched} calls matched"
