"""Builds the tick. It decides nothing."""

from datetime import timedelta
from functools import cache

from shared.clock import Clock, SystemClock
from shared.flows.claims import Claimer
from shared.flows.recover import Recovery
from shared.flows.tick import TickFlow
from shared.flows.ticks import TicksFlow
from shared.queue import JobQueue
from shared.settings import TickSettings
from shared.store.jobs import Jobs
from shared.store.journal import Journal
from shared.store.runs import Runs
from shared.store.shards import Shards
from shared.store.table import Table
from shared.wiring import base


def build_tick(settings: TickSettings, aws: base.Clients, clock: Clock) -> TickFlow:
    """The tick over `aws`."""
    table = Table(aws.dynamodb, settings.table, base.SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs, journal = Jobs(table, settings.shards, retention), Runs(table, retention), Journal(table)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, base.SEND_PAUSE)
    return TickFlow(
        jobs=jobs,
        shards=Shards(table),
        journal=journal,
        claimer=Claimer(jobs, queue, clock),
        recovery=Recovery(jobs, runs, journal, queue),
        clock=clock,
        owner=base.environment_id(),
        horizon_s=settings.horizon_s,
        pause=base.SEND_PAUSE,
    )


@cache
def ticks() -> TicksFlow:
    """Built at cold start from the environment."""
    return TicksFlow(build_tick(TickSettings.from_env(), base.clients(), SystemClock()))
