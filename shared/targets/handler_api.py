"""What a handler is made of: the `@handler("name")` decorator, its registry, and `Run`. It never calls a handler.

User code imports these names from `handlers`, which hands them on.
"""

import inspect
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from shared.targets.names import check_handler_name
from shared.targets.processes.limits import MAX_PROGRESS_BYTES
from shared.targets.processes.values import UnfitValueError, dump


class Line(Protocol):
    """The way from a handler to its executor."""

    def is_cancelled(self) -> bool:
        """Whether a cancel of the run was asked for."""
        ...

    def report(self, progress: bytes) -> None:
        """Show one JSON text, of at most MAX_PROGRESS_BYTES of UTF-8, in place of the one before."""
        ...


class Alone:
    """The line of a run that a test made: nobody at the other end."""

    def is_cancelled(self) -> bool:
        return False

    def report(self, progress: bytes) -> None:
        del progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a handler is told about its run, as its second argument."""

    job_id: str
    scheduled_for: datetime  # aware, in UTC: when the run was due, whatever the time is now
    attempt: int  # 1 to max_attempts
    max_attempts: int
    idempotency_key: str  # the same in every attempt of this run, different in every other run
    deadline: float = math.inf  # on time.monotonic(), in seconds
    line: Line = field(default=Alone(), repr=False, compare=False)

    def remaining_s(self) -> float:
        """Seconds until the attempt is ended by its timeout; 0.0 at the end."""
        return max(0.0, self.deadline - time.monotonic())

    def cancelled(self) -> bool:
        """Whether the run is cancelled: then return or raise soon. Costs next to nothing.

        It turns True up to a heartbeat (20 s) after the cancel; a handler that goes on is ended a heartbeat later.
        """
        return self.line.is_cancelled()

    def progress(self, value: object) -> None:
        """Show `value`, any JSON of at most 512 bytes, as the run's progress. The latest counts; it is cheap in a loop.

        Raises ValueError for what is no JSON or too long.
        """
        try:
            text = dump(value, "the progress", MAX_PROGRESS_BYTES)
        except UnfitValueError as error:
            raise ValueError(str(error)) from None
        self.line.report(text.encode())


# Payload and return value are any JSON: only the handler knows which.
Handler = Callable[..., object]
HandlerT = TypeVar("HandlerT", bound=Handler)

_registered: dict[str, Handler] = {}


def handler(name: str) -> Callable[[HandlerT], HandlerT]:
    """Register a function `(payload, run)` as the handler `name`; the function itself stays as it is.

    Raises ValueError for a name that is malformed or taken, TypeError for all but plain functions of two arguments.
    """
    check_handler_name(name)

    def register(function: HandlerT) -> HandlerT:
        _check_function(name, function)
        other = _registered.get(name)
        if other is not None:
            raise ValueError(f"handler {name!r} is defined twice: by {_place(other)} and by {_place(function)}")
        _registered[name] = function
        return function

    return register


def registered() -> Mapping[str, Handler]:
    """All handlers of the modules imported so far, by name."""
    return dict(_registered)


def forget_failed_modules() -> None:
    """Drop the handlers of modules whose import failed after it had registered them."""
    for name, function in registered().items():
        if getattr(function, "__module__", None) not in sys.modules:
            del _registered[name]


def _check_function(name: str, function: Handler) -> None:
    if not callable(function):
        raise TypeError(f"handler {name!r} must be a function (payload, run), not {type(function).__name__}")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"handler {name!r} must be a plain function; {_place(function)} is async or a generator")
    try:
        inspect.signature(function).bind(None, None)
    except ValueError:  # a builtin that does not tell its signature
        return
    except TypeError:
        raise TypeError(f"handler {name!r} must take (payload, run); {_place(function)} does not") from None


def _place(function: Handler) -> str:
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', type(function).__name__)}"
