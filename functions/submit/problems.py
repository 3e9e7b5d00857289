"""The one place that maps errors to HTTP: RFC 9457 problem documents. It never shows the inside of a failure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as AwsConnectionError
from typing_extensions import TypedDict

from functions.submit.errors import (
    InvalidRequestError,
    MethodNotAllowedError,
    RouteNotFoundError,
    UnsupportedMediaTypeError,
)
from shared.model.errors import (
    ConflictError,
    IdempotencyInProgressError,
    IdempotencyMismatchError,
    InputError,
    JobNotFoundError,
    PreconditionError,
    TooLargeError,
    UnavailableError,
)
from shared.queue import SendError

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
_TOLD = 20  # faults told of in one sentence; `errors` has more

_PASSING = frozenset(  # AWS error codes that go by themselves
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)


class FieldProblem(TypedDict):
    """What is wrong with one field, named by its path in the body, the path, the query or the headers."""

    field: str
    message: str


class Problem(TypedDict):
    """RFC 9457: `type` is stable, `detail` says what is wrong; `errors` is there when fields are to blame."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[FieldProblem]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem; `name` ends its type URI."""

    name: str
    status: int
    title: str
    retry: bool = False  # the same request may well work in a second

    @property
    def type(self) -> str:
        return f"urn:duetime:problem:{self.name}"


INVALID = Kind("invalid-request", 400, "The request is not valid")
NO_JOB = Kind("job-not-found", 404, "There is no such job or run")
NO_ROUTE = Kind("route-not-found", 404, "There is no such path")
METHOD = Kind("method-not-allowed", 405, "The path does not have this method")
CONFLICT = Kind("conflict", 409, "The job's state does not allow this")
IN_PROGRESS = Kind("idempotency-in-progress", 409, "The first call with this key is still going on", retry=True)
PRECONDITION = Kind("precondition-failed", 412, "The job is at another version")
TOO_LARGE = Kind("too-large", 413, "The request is too large")
MEDIA_TYPE = Kind("unsupported-media-type", 415, "The body has to be JSON")
MISMATCH = Kind("idempotency-mismatch", 422, "The key was used with another body")
INTERNAL = Kind("internal", 500, "Something went wrong here")
UNAVAILABLE = Kind("unavailable", 503, "A service behind this API cannot answer now", retry=True)

_KINDS: tuple[tuple[type[Exception], Kind], ...] = (  # the first that fits; the narrower stands before the wider
    (TooLargeError, TOO_LARGE),
    (InputError, INVALID),
    (JobNotFoundError, NO_JOB),
    (RouteNotFoundError, NO_ROUTE),
    (MethodNotAllowedError, METHOD),
    (ConflictError, CONFLICT),
    (PreconditionError, PRECONDITION),
    (IdempotencyInProgressError, IN_PROGRESS),
    (UnsupportedMediaTypeError, MEDIA_TYPE),
    (IdempotencyMismatchError, MISMATCH),
    (UnavailableError, UNAVAILABLE),
)


def kind_of(error: Exception) -> Kind:
    """The kind of problem that `error` is."""
    if _passes(error):
        return UNAVAILABLE
    return next((kind for wanted, kind in _KINDS if isinstance(error, wanted)), INTERNAL)


def problem(error: Exception) -> tuple[Problem, Mapping[str, str]]:
    """The document for `error`, and the headers that go with it."""
    kind = kind_of(error)
    document: Problem = {"type": kind.type, "title": kind.title, "status": kind.status, "detail": _detail(kind, error)}
    if isinstance(error, InvalidRequestError):
        document["errors"] = [{"field": fault.field, "message": fault.message} for fault in error.errors]
    elif isinstance(error, InputError):
        document["errors"] = [{"field": error.field, "message": error.message}]
    headers = {"Content-Type": CONTENT_TYPE}
    if kind.retry:
        headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    if isinstance(error, MethodNotAllowedError):
        headers["Allow"] = ", ".join(error.allowed)
    return document, headers


def _detail(kind: Kind, error: Exception) -> str:
    if kind is INTERNAL:
        return "The request may have been right; what went wrong was logged under this request's id."
    if kind is UNAVAILABLE:
        return "It may have taken effect or not: send it again, with an Idempotency-Key if it submits a job."
    if isinstance(error, InvalidRequestError) and len(error.errors) > 1:
        told = [f"{fault.field}: {fault.message}" for fault in error.errors[:_TOLD]]
        more = len(error.errors) - len(told)
        return "; ".join(told) + (f"; and {more} more" if more else "")
    return str(error)


def _passes(error: Exception) -> bool:
    if isinstance(error, ClientError):
        answer = error.response
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or answer.get("Error", {}).get("Code") in _PASSING
    return isinstance(error, HTTPClientError | AwsConnectionError | SendError)
