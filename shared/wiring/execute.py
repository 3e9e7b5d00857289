"""Builds the executor. It decides nothing."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from itertools import count

from shared.clock import Clock, SystemClock
from shared.flows.dependencies import Parents, ParentsGate
from shared.flows.execute import ExecuteFlow
from shared.flows.families import Waker
from shared.flows.gates import Gates
from shared.flows.groups import GroupGate
from shared.flows.overlap import OverlapGate
from shared.flows.workshop import Workshop
from shared.queue import DeadLetterQueue, JobQueue
from shared.rules.lease import RENEW_EVERY_S
from shared.settings import ExecuteSettings
from shared.store.children import Children
from shared.store.groups import Groups
from shared.store.jobs import Jobs
from shared.store.overlaps import Overlaps
from shared.store.run_batches import RunBatches
from shared.store.run_history import RunHistory
from shared.store.run_requests import RunRequests
from shared.store.runs import Runs
from shared.store.table import Table
from shared.targets.dispatch import Targets
from shared.targets.python import PythonTarget
from shared.targets.target import TargetCaller
from shared.telemetry import logger
from shared.wiring import base


def build_execute(settings: ExecuteSettings, aws: base.Clients, clock: Clock, targets: TargetCaller) -> ExecuteFlow:
    """The executor over `aws`, calling `targets`."""
    table = Table(aws.dynamodb, settings.table, base.SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs = Jobs(table, 1, retention)  # it only reads them, whatever their shards
    runs, history = Runs(table, retention), RunHistory(table)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, base.SEND_PAUSE)
    workshop = Workshop(
        jobs=jobs,
        runs=runs,
        batches=RunBatches(runs, _got_round),
        dead_letters=DeadLetterQueue(aws.sqs, settings.dead_letter_queue_url),
        targets=targets,
        gates=Gates(
            (
                ParentsGate(Parents(jobs, runs, history)),
                OverlapGate(Overlaps(table, retention), runs, history, RunRequests(table, retention)),
                GroupGate(Groups(table), runs),
            )
        ),
        waker=Waker(jobs, Children(table), queue),
        clock=clock,
        fraction=random.random,
        worker_id=_worker_ids(),
        problem=_got_round,
    )
    return ExecuteFlow(queue, workshop, ThreadPoolExecutor(base.BATCH_THREADS), RENEW_EVERY_S)


@cache
def execute() -> ExecuteFlow:
    """Built at cold start from the environment, with the user's handlers loaded: no lease waits for their imports."""
    python = PythonTarget(base.HANDLERS)
    python.load()
    return build_execute(ExecuteSettings.from_env(), base.clients(), SystemClock(), Targets({"python": python}))


def _got_round(error: Exception) -> None:
    logger.warning("an AWS call failed and was got round", exc_info=error)


def _worker_ids() -> Callable[[], str]:
    """`<environment>#<n>`: each attempt's own."""
    environment, numbers = base.environment_id(), count(1)
    return lambda: f"{environment}#{next(numbers)}"
