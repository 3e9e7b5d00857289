"""Builds the executor. It decides nothing."""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import cache
from itertools import count

from shared.clock import Clock, SystemClock
from shared.flows.execute import ExecuteFlow
from shared.flows.gates import Gate, Gates
from shared.flows.workshop import Workshop
from shared.queue import DeadLetterQueue, JobQueue
from shared.rules.lease import RENEW_EVERY_S
from shared.settings import ExecuteSettings
from shared.store.jobs import Jobs
from shared.store.run_batches import RunBatches
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
    runs = Runs(table, retention)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, base.SEND_PAUSE)

    @base.once
    def gates() -> Sequence[Gate]:
        from shared.wiring.gates import build_gates  # here: what meets no job with a gate starts without them

        return build_gates(table, jobs, runs, retention)

    def wake(job_id: str, now: datetime) -> None:
        from shared.wiring.gates import build_waker  # here, as above

        build_waker(table, jobs, queue).wake(job_id, now)

    workshop = Workshop(
        jobs=jobs,
        runs=runs,
        batches=RunBatches(runs, _got_round),
        dead_letters=DeadLetterQueue(aws.sqs, settings.dead_letter_queue_url),
        targets=targets,
        gates=Gates(gates),
        wake=wake,
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
