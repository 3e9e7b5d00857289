"""Builds the audit. It decides nothing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache

from shared.clock import Clock, SystemClock
from shared.flows.audit import AuditFlow
from shared.flows.claims import Claimer
from shared.flows.letters import AnsweredLetters
from shared.flows.recover import Recovery
from shared.queue import DeadLetterQueue, JobQueue
from shared.settings import AuditSettings
from shared.store.jobs import Jobs
from shared.store.journal import Journal
from shared.store.run_history import RunHistory
from shared.store.runs import Runs
from shared.store.shards import Shards
from shared.store.table import Table
from shared.wiring import base


def build_audit(settings: AuditSettings, aws: base.Clients, clock: Clock) -> AuditFlow:
    """The audit over `aws`."""
    table = Table(aws.dynamodb, settings.table, base.SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs, journal = Jobs(table, settings.shards, retention), Runs(table, retention), Journal(table)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, base.SEND_PAUSE)
    return AuditFlow(
        table=table,
        jobs=jobs,
        history=RunHistory(table),
        shards=Shards(table),
        claimer=Claimer(jobs, queue, clock),
        recovery=Recovery(jobs, runs, journal, queue),
        journal=journal,
        queue=queue,
        letters=AnsweredLetters(DeadLetterQueue(aws.sqs, settings.dead_letter_queue_url), runs, clock),
        clock=clock,
        token=base.token,
        pool=ThreadPoolExecutor(settings.segments),
        segments=settings.segments,
        horizon_s=settings.horizon_s,
    )


@cache
def audit() -> AuditFlow:
    """Built at cold start from the environment."""
    return build_audit(AuditSettings.from_env(), base.clients(), SystemClock())
