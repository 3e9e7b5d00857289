"""The executor function: a batch of messages in, those that must come back out. It decides nothing."""

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.flows.execute import Handled, Received
from shared.model.instants import to_text
from shared.telemetry import logger, metrics
from shared.wiring.execute import execute

flow = execute()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`event` is a batch of SQS; the answer is Lambda's partial batch response."""
    del context
    handled = flow.run([_received(record) for record in event["Records"]])
    for one in handled:
        _report(one)
    back = [{"itemIdentifier": one.received.message_id} for one in handled if not one.ended.done]
    return {"batchItemFailures": back}


def _received(record: dict[str, Any]) -> Received:
    priority = flow.queue.priority_of(record["eventSourceARN"])
    attributes = record.get("attributes", {})
    return Received.of(record["messageId"], record["receiptHandle"], record["body"], attributes, priority)


def _report(one: Handled) -> None:
    ended, message = one.ended, one.message
    about: dict[str, Any] = (
        {"job_id": message.job_id, "scheduled_for": to_text(message.scheduled_for)} if message else {}
    )
    if one.error is not None:
        logger.error("a message could not be handled", exc_info=one.error, **about)
    else:
        logger.info("run", outcome=ended.outcome, done=ended.done, late_s=ended.late_s, **about)
    if ended.outcome is not None:
        metrics.add_metric(f"Run_{ended.outcome}", MetricUnit.Count, 1)
    if ended.late_s is not None:
        metrics.add_metric("Lateness", MetricUnit.Milliseconds, ended.late_s * 1000)
