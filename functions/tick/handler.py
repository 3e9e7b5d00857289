"""The tick function: a schedule's event in, one tick of its shard, what it did out. It decides nothing."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.errors import InputError
from shared.telemetry import logger, metrics
from shared.wiring.tick import tick

STOP_BEFORE_S = 15  # of the function's end: what a batch in hand still needs

flow = tick()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`event` is `{"shard": n}`, as the shard's schedule sends it."""
    shard = event.get("shard")
    if type(shard) is not int or shard < 0:
        raise InputError("shard", f"must be a whole number from 0 on, not {shard!r}")
    now = flow.clock.now()
    left_s = context.get_remaining_time_in_millis() / 1000 - STOP_BEFORE_S
    done = flow.run(shard, now, now + timedelta(seconds=left_s))
    for job_id in done.unplannable:
        logger.error("the job's next time cannot be worked out", job_id=job_id)
    if not done.held:
        metrics.add_metric("Claimed", MetricUnit.Count, done.claimed.won)
        metrics.add_metric("Enqueued", MetricUnit.Count, done.claimed.sent)
        metrics.add_metric("Recovered", MetricUnit.Count, done.recovered)
    summary: dict[str, Any] = {
        "shard": shard,
        "held": done.held,
        "epoch": done.epoch,
        "recovered": done.recovered,
        "claimed": done.claimed.won,
        "lost": done.claimed.lost,
        "sent": done.claimed.sent,
        "left": done.claimed.left,
        "complete": done.complete,
    }
    logger.info("tick", **summary)
    return summary
