"""Faults of AWS calls and of the process that makes them, set for a block. It never decides which calls: the test does.

`with faults.crash(after="sqs:SendMessageBatch"):` ends with the process dead at that call; the block's caller goes on.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support import calls
from tests.support.calls import Call, Observer
from tests.support.moto_partiql import UpdatesByUpdateItem

Match = str | Callable[[Call], bool]


class CrashError(BaseException):
    """The process died here. Not an Exception: nothing in it may go on."""


def matches(match: Match, call: Call) -> bool:
    return call.name == match if isinstance(match, str) else match(call)


def writes(sk: str) -> Callable[[Call], bool]:
    """A match: PutItem, UpdateItem or DeleteItem of an item whose sort key begins with `sk`."""

    def judge(call: Call) -> bool:
        if call.operation not in ("PutItem", "UpdateItem", "DeleteItem"):
            return False
        key: dict[str, Any] = call.params["Item" if call.operation == "PutItem" else "Key"]
        return str(key["sk"]["S"]).startswith(sk)

    return judge


@dataclass
class _Nth(Observer):
    """Counts the calls that match; true for number `nth` (from 1 on)."""

    order = calls.FAULTS

    match: Match
    nth: int = 1
    seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hit(self, call: Call) -> bool:
        if not matches(self.match, call):
            return False
        with self._lock:
            self.seen += 1
            return self.seen == self.nth


class _Before(_Nth):
    def answer(self, call: Call) -> None:
        if self.hit(call):
            raise CrashError(f"before {call.name}")


class _After(_Nth):
    def on_answer(self, call: Call) -> None:
        if self.hit(call):
            raise CrashError(f"after {call.name}")


@contextlib.contextmanager
def crash(*, before: Match | None = None, after: Match | None = None, nth: int = 1) -> Iterator[None]:
    """The process that makes the `nth` matching call dies just before it, or just after it took effect."""
    observer = _Before(before, nth) if before is not None else _After(after or "", nth)
    with calls.observing(observer), contextlib.suppress(CrashError):
        yield
        raise AssertionError(f"only {observer.seen} calls like {before or after}; none crashed")


class _Refusing(Observer):
    order = calls.FAULTS

    def __init__(self, match: Match, times: int, code: str) -> None:
        self.match, self.times, self.code, self.refused = match, times, code, 0

    def answer(self, call: Call) -> dict[str, Any] | None:
        if self.refused >= self.times or not matches(self.match, call):
            return None
        self.refused += 1
        return {
            "Error": {"Code": self.code, "Message": "made up by the test"},
            "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {}, "RetryAttempts": 3},
        }


@contextlib.contextmanager
def refusing(match: Match, times: int = 1, code: str = "ProvisionedThroughputExceededException") -> Iterator[_Refusing]:
    """The first `times` matching calls are refused for good (botocore's own tries are over); `refused` counts them."""
    observer = _Refusing(match, times, code)
    with calls.observing(observer):
        yield observer


class _Twice(_Nth):
    def __init__(self, match: Match, make: Callable[[Call], object]) -> None:
        super().__init__(match)
        self.make = make
        self.repeated: Call | None = None

    def answer(self, call: Call) -> None:
        if self.hit(call):
            with calls.unseen():
                self.make(call)
            self.repeated = call

    def on_answer(self, call: Call) -> None:
        if call is self.repeated and call.answer is not None:
            call.answer["ResponseMetadata"]["RetryAttempts"] = 1


def repeat(aws: Any, call: Call) -> object:
    """Make `call` once more, as botocore does when no answer comes."""
    client = aws.dynamodb if call.service == "dynamodb" else aws.sqs
    if call.operation == "BatchExecuteStatement" and aws.backend == "moto":
        return UpdatesByUpdateItem(client).answer(call)
    name = "".join("_" + c.lower() if c.isupper() else c for c in call.operation).lstrip("_")
    return getattr(client, name)(**call.asked)


@contextlib.contextmanager
def answer_lost(aws: Any, match: Match) -> Iterator[None]:
    """The first matching call takes effect, its answer is lost, and botocore makes it again.

    So a conditional write finds its own effect.
    """

    observer = _Twice(match, lambda call: repeat(aws, call))
    with calls.observing(observer):
        yield
    assert observer.repeated is not None, f"no call like {match} was made"


@contextlib.contextmanager
def lost_and_meanwhile(aws: Any, match: Match, act: Callable[[], object]) -> Iterator[None]:
    """The first matching call takes effect, its answer is lost, `act` happens, and it is made again."""
    acted = False

    def meanwhile(call: Call) -> bool:
        nonlocal acted
        if not acted and matches(match, call):
            acted = True
            act()
        return False

    with answer_lost(aws, match), refusing(meanwhile):
        yield


@dataclass
class Log(Observer):
    """Keeps every call that is made."""

    order = calls.LOG

    seen: list[Call] = field(default_factory=list)

    def on_answer(self, call: Call) -> None:
        self.seen.append(call)

    def names(self) -> list[str]:
        return [call.name for call in self.seen]

    def of(self, match: Match) -> list[Call]:
        return [call for call in self.seen if matches(match, call)]


@contextlib.contextmanager
def logging() -> Iterator[Log]:
    """The calls made in the block that came to an answer of the service."""
    log = Log()
    with calls.observing(log):
        yield log
