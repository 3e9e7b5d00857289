"""The API function: an HTTP API event in, one call of the table of routes, a response out. It decides nothing."""

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.submit import strict_json
from functions.submit.problems import kind_of, problem
from functions.submit.request import Request
from functions.submit.routes import route
from shared.telemetry import logger, metrics
from shared.wiring.api import api

wired = api()


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`event`: payload format 2.0 of an HTTP API."""
    del context
    try:
        response = _answer(event)
    except Exception as error:  # noqa: BLE001  whatever it is, the caller gets a problem document
        response = _failure(error)
    metrics.add_metric(f"Answers{response['statusCode'] // 100}xx", MetricUnit.Count, 1)
    return response


def _answer(event: dict[str, Any]) -> dict[str, Any]:
    request = Request(event)
    operation, path = route(request.method, request.whole_path)
    reply = operation.call(Request(event, path), wired, wired.clock.now())
    return _response(reply.status, reply.document, {"Content-Type": "application/json", **reply.headers})


def _failure(error: Exception) -> dict[str, Any]:
    kind = kind_of(error)
    if kind.status >= 500:
        logger.exception("the call failed", exc_info=error)
    document, headers = problem(error)
    return _response(kind.status, document, headers)


def _response(status: int, document: object, headers: Mapping[str, str]) -> dict[str, Any]:
    body = strict_json.write(document)
    return {"statusCode": status, "headers": dict(headers), "body": body, "isBase64Encoded": False}
