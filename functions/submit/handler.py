"""The API function: an HTTP API event in, one call of the table of routes, a response out. It decides nothing."""

from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.submit import strict_json
from functions.submit.operations import Operation
from functions.submit.problems import kind_of, problem
from functions.submit.request import Request
from functions.submit.routes import OPERATIONS, no_route
from shared.telemetry import logger, metrics
from shared.wiring.api import api

app = APIGatewayHttpResolver()


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`event`: payload format 2.0 of an HTTP API."""
    return app.resolve(event, context)


def _add(operation: Operation) -> None:
    @app.route(operation.rule, operation.method, operation_id=operation.operation_id)
    def run(**path: str) -> Response[str]:
        if not operation.has_path(app.current_event.path):  # Powertools lets a line feed at the end pass
            raise no_route(operation.method, app.current_event.path)
        wired = api()
        reply = operation.call(Request(app.current_event, path), wired, wired.clock.now())
        return _respond(reply.status, reply.document, {"Content-Type": "application/json", **reply.headers})


def _respond(status: int, document: object, headers: dict[str, str]) -> Response[str]:
    metrics.add_metric(f"Answers{status // 100}xx", MetricUnit.Count, 1)
    return Response(status, body=strict_json.write(document), headers=headers)


def _no_route(_: NotFoundError) -> Response[str]:
    return _failed(no_route(app.current_event.http_method, app.current_event.path))


def _failed(error: Exception) -> Response[str]:
    kind = kind_of(error)
    if kind.status >= 500:
        logger.exception("the call failed", exc_info=error)
    document, headers = problem(error)
    return _respond(kind.status, document, dict(headers))


app.not_found(_no_route)
app.exception_handler(Exception)(_failed)
for _operation in OPERATIONS:
    _add(_operation)
