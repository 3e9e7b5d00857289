"""One hook on every botocore call: observers see it, may change, answer or break it. It judges nothing itself.

Observers lie around the service like the skins of an onion, the one of the lowest `order` outside. For one call:
`on_request` of each (the parameters may be changed), `answer` of each until one gives an answer (nothing is sent then),
the service, and back outwards `on_answer` of each.
"""

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from botocore import handlers
from botocore.exceptions import ClientError

RULES, LOG, FAULTS, STAND_IN = range(4)  # orders, from the outside to the inside

_CONTEXT = "duetime_tests_call"
_unseen = threading.local()
_observers: list["Observer"] = []


@dataclass
class Call:
    """One call of one client. `params` is what will be sent; `asked` what the caller gave."""

    service: str  # `dynamodb`, `sqs`
    operation: str  # `UpdateItem`
    params: dict[str, Any]
    endpoint: str
    asked: dict[str, Any] = field(default_factory=dict)
    status: int | None = None  # HTTP status of the answer
    answer: dict[str, Any] | None = None  # the parsed answer, error answers included
    notes: dict[str, Any] = field(default_factory=dict)  # what an observer wants to remember until the answer

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"


class Observer:
    """Sees every call while it is added. A raised exception goes to the caller as if the service had raised it."""

    order = STAND_IN

    def on_request(self, call: Call) -> None:
        """Before botocore checks the parameters; they may be changed here."""

    def answer(self, call: Call) -> dict[str, Any] | None:
        """Just before it is sent: an answer in place of the service's, or None."""
        return None

    def on_answer(self, call: Call) -> None:
        """After the answer came; `call.answer` may be changed in place."""


def add(observer: Observer) -> None:
    """Let `observer` see all calls from now on, of clients old and new."""
    _observers.append(observer)
    _observers.sort(key=lambda one: one.order)


def remove(observer: Observer) -> None:
    _observers.remove(observer)


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    add(observer)
    try:
        yield
    finally:
        remove(observer)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Within the block, calls of this thread are the harness's own: no observer sees them."""
    before = getattr(_unseen, "on", False)
    _unseen.on = True
    try:
        yield
    finally:
        _unseen.on = before


def _before_parameter_build(params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
    if getattr(_unseen, "on", False):
        return
    call = Call(model.service_model.service_name, model.name, params, "", asked=copy.deepcopy(params))
    context[_CONTEXT] = call
    for observer in tuple(_observers):
        observer.on_request(call)


def _before_call(params: dict[str, Any], context: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
    call: Call | None = context.get(_CONTEXT)
    if call is None:
        return None
    call.endpoint = params.get("url", "")
    for observer in tuple(_observers):
        answer = observer.answer(call)
        if answer is not None:
            answer.setdefault("ResponseMetadata", {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0})
            return SimpleNamespace(status_code=answer["ResponseMetadata"]["HTTPStatusCode"]), answer
    return None


def _after_call(http_response: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    call: Call | None = context.get(_CONTEXT)
    if call is None:
        return
    call.status, call.answer = http_response.status_code, parsed
    for observer in reversed(tuple(_observers)):
        observer.on_answer(call)


def through(
    service: str, operation: str, run: Callable[[dict[str, Any]], dict[str, Any]], **params: Any
) -> dict[str, Any]:
    """A call of a stand-in that has no botocore before it: the observers see it as they see the others."""
    if getattr(_unseen, "on", False):
        return run(params)
    call = Call(service, operation, params, "", asked=dict(params))
    observers = tuple(_observers)
    for observer in observers:
        observer.on_request(call)
    for observer in observers:
        call.answer = observer.answer(call)
        if call.answer is not None:
            break
    else:
        try:
            call.answer = run(call.params)
        except ClientError as refused:
            call.answer = dict(refused.response)
    metadata = call.answer.setdefault("ResponseMetadata", {"HTTPStatusCode": 200, "RetryAttempts": 0})
    call.status = metadata["HTTPStatusCode"]
    for observer in reversed(observers):
        observer.on_answer(call)
    if call.status >= 300:
        raise ClientError(call.answer, operation)  # type: ignore[arg-type]
    return call.answer


def install() -> None:
    """Hook every botocore session made from now on; called once, before any client is made."""
    if any(spec[1] is _before_call for spec in handlers.BUILTIN_HANDLERS):
        return
    handlers.BUILTIN_HANDLERS += [
        ("before-parameter-build", _before_parameter_build, handlers.REGISTER_LAST),
        ("before-call", _before_call),
        ("after-call", _after_call, handlers.REGISTER_LAST),
    ]
