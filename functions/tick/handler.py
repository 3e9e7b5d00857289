"""The tick function: a schedule's event in, the ticks of its shards, what they did out. It decides nothing."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.flows.tick import Ticked
from shared.flows.ticks import TickFailed
from shared.model.errors import DuetimeError, InputError
from shared.telemetry import logger, metrics
from shared.wiring.tick import ticks

STOP_BEFORE_S = 15  # of the function's end: what a batch in hand still needs

flow = ticks()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`event` is `{"shards": [0, 1, …]}`, as a schedule sends it, or `{"shard": n}`.

    Raises DuetimeError at the end if the tick of a shard failed, so that Lambda counts it.
    """
    now = flow.ticker.clock.now()
    left_s = context.get_remaining_time_in_millis() / 1000 - STOP_BEFORE_S
    ended = flow.run(_shards(event), now, now + timedelta(seconds=left_s))
    told = {"shards": [_told(one) for one in ended if isinstance(one, Ticked)]}
    if not all(isinstance(one, Ticked) and one.idle for one in ended):  # a line each minute costs more than it says
        logger.info("tick", extra=told)
        metrics.flush_metrics()
    if failed := [one for one in ended if isinstance(one, TickFailed)]:
        for one in failed:
            logger.error("the tick of a shard failed", exc_info=one.error, shard=one.shard)
        raise DuetimeError(f"the ticks of shards {[one.shard for one in failed]} failed") from failed[0].error
    return told


def _shards(event: dict[str, Any]) -> list[int]:
    field, shards = ("shards", event["shards"]) if "shards" in event else ("shard", [event.get("shard")])
    if not isinstance(shards, list) or not shards or not all(type(one) is int and one >= 0 for one in shards):
        raise InputError(field, f"must be whole numbers from 0 on, not {event.get(field)!r}")
    return shards


def _told(done: Ticked) -> dict[str, Any]:
    for job_id in done.unplannable:
        logger.error("the job's next time cannot be worked out", job_id=job_id)
    if not done.idle:
        metrics.add_metric("Claimed", MetricUnit.Count, done.claimed.won)
        metrics.add_metric("Enqueued", MetricUnit.Count, done.claimed.sent)
        metrics.add_metric("Recovered", MetricUnit.Count, done.recovered)
    claimed = {"claimed": done.claimed.won, "lost": done.claimed.lost, "sent": done.claimed.sent}
    about = {"shard": done.shard, "held": done.held, "epoch": done.epoch, "recovered": done.recovered}
    return {**about, **claimed, "left": done.claimed.left, "complete": done.complete}
