"""The audit function: an hourly event in, one audit, its findings out and as a metric. It decides nothing."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.telemetry import logger, metrics
from shared.wiring.audit import audit

STOP_BEFORE_S = 20  # of the function's end

flow = audit()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """One audit of the whole table."""
    del event
    now = flow.clock.now()
    found = flow.run(now, now + timedelta(seconds=context.get_remaining_time_in_millis() / 1000 - STOP_BEFORE_S))
    metrics.add_metric("AuditFindings", MetricUnit.Count, found.findings)
    summary: dict[str, Any] = {
        "findings": found.findings,
        "overdue": found.overdue,
        "unstarted": found.unstarted,
        "abandoned": found.abandoned,
        "pages": found.pages,
        "unplannable": list(found.unplannable),
        "unreadable": list(found.unreadable),
        "answered": found.answered,
        "complete": found.complete,
    }
    (logger.error if found.findings or not found.complete else logger.info)("audit", **summary)
    return summary
