"""Errors as HTTP: each has one status and one type, and none tells what is inside."""

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from functions.submit import errors as request_errors
from functions.submit.problems import kind_of, problem
from shared import queue
from shared.model import errors


def aws_error(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "secret"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutItem")  # type: ignore[arg-type]


CASES = [
    (errors.InputError("name", "must be text"), 400, "invalid-request"),
    (errors.InvalidScheduleError("cron", "never fires"), 400, "invalid-request"),
    (request_errors.InvalidRequestError([request_errors.FieldError("a", "is missing")]), 400, "invalid-request"),
    (errors.TooLargeError("payload", "too long"), 413, "too-large"),
    (errors.JobNotFoundError("there is no job 'x'"), 404, "job-not-found"),
    (request_errors.RouteNotFoundError("/x"), 404, "route-not-found"),
    (request_errors.MethodNotAllowedError("PUT", ["GET", "POST"]), 405, "method-not-allowed"),
    (errors.ConflictError("job 'x' is over"), 409, "conflict"),
    (errors.PreconditionError("job 'x' is at version 2"), 412, "precondition-failed"),
    (errors.UnavailableError("could not be written"), 503, "unavailable"),
    (errors.IdempotencyInProgressError("still going on"), 409, "idempotency-in-progress"),
    (errors.IdempotencyMismatchError("another body"), 422, "idempotency-mismatch"),
    (request_errors.UnsupportedMediaTypeError("must be JSON"), 415, "unsupported-media-type"),
    (queue.SendError("secret"), 503, "unavailable"),
    (aws_error("ThrottlingException"), 503, "unavailable"),
    (aws_error("ProvisionedThroughputExceededException"), 503, "unavailable"),
    (aws_error("InternalServerError", 500), 503, "unavailable"),
    (aws_error("Whatever", 503), 503, "unavailable"),
    (ReadTimeoutError(endpoint_url="https://secret"), 503, "unavailable"),
    (ConnectTimeoutError(endpoint_url="https://secret"), 503, "unavailable"),
    (EndpointConnectionError(endpoint_url="https://secret"), 503, "unavailable"),
    (aws_error("AccessDeniedException"), 500, "internal"),
    (aws_error("ValidationException"), 500, "internal"),
    (NoCredentialsError(), 500, "internal"),
    (errors.SettingsError("secret"), 500, "internal"),
    (KeyError("secret"), 500, "internal"),
    (RecursionError("secret"), 500, "internal"),
]


@pytest.mark.parametrize(("error", "status", "name"), CASES, ids=[f"{type(e).__name__}-{s}" for e, s, _ in CASES])
def test_each_error_has_its_place(error: Exception, status: int, name: str) -> None:
    document, headers = problem(error)
    assert (document["status"], document["type"]) == (status, f"urn:duetime:problem:{name}")
    assert kind_of(error).status == status
    assert headers["Content-Type"] == "application/problem+json"
    assert "secret" not in str(document)
    assert ("Retry-After" in headers) == (status == 503 or name == "idempotency-in-progress")
    assert ("errors" in document) == isinstance(error, errors.InputError)


def test_every_error_of_the_tree_that_reaches_a_client_is_listed() -> None:
    inside = {errors.DuetimeError, errors.LeaseLostError}
    tree = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DuetimeError)}
    assert tree - inside <= {type(error) for error, _, _ in CASES}


def test_the_methods_that_are_possible_are_named() -> None:
    document, headers = problem(request_errors.MethodNotAllowedError("PUT", ["GET", "POST"]))
    assert headers["Allow"] == "GET, POST"
    assert document["detail"] == "PUT is not possible here, only GET, POST"


def test_several_faults_are_all_told() -> None:
    faults = [request_errors.FieldError("a", "is missing"), request_errors.FieldError("b.c", "must be text, not 5")]
    document, _ = problem(request_errors.InvalidRequestError(faults))
    assert document["detail"] == "a: is missing; b.c: must be text, not 5"
    assert document["errors"] == [
        {"field": "a", "message": "is missing"},
        {"field": "b.c", "message": "must be text, not 5"},
    ]
