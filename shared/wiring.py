"""The only place that builds things: clients, stores, flows, each once per cold start. It decides nothing."""

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3
from botocore.config import Config

from shared.clock import Clock, SystemClock
from shared.flows.again import AgainFlow
from shared.flows.attempt import Workshop
from shared.flows.audit import AuditFlow
from shared.flows.batch import BatchFlow
from shared.flows.changing import Changer
from shared.flows.claims import Claimer
from shared.flows.control import ControlFlow
from shared.flows.dependencies import Parents, ParentsGate
from shared.flows.enqueue import Enqueuer
from shared.flows.execute import ExecuteFlow
from shared.flows.families import Families, Waker
from shared.flows.gates import Gates
from shared.flows.groups import GroupGate, GroupsFlow
from shared.flows.inspect import InspectFlow
from shared.flows.overlap import OverlapGate
from shared.flows.recover import Recovery
from shared.flows.rows import Rows
from shared.flows.search import SearchFlow
from shared.flows.submit import SubmitFlow
from shared.flows.tick import TickFlow
from shared.queue import DeadLetterQueue, JobQueue
from shared.rules.lease import RENEW_EVERY_S
from shared.settings import AuditSettings, ExecuteSettings, SubmitSettings, TickSettings
from shared.store.children import Children
from shared.store.cursor_secret import CursorSecret
from shared.store.groups import Groups
from shared.store.job_batches import JobBatches
from shared.store.jobs import Jobs
from shared.store.journal import Journal
from shared.store.listing import Listing
from shared.store.overlaps import Overlaps
from shared.store.run_requests import RunRequests
from shared.store.runs import Runs
from shared.store.shards import Shards
from shared.store.table import Table
from shared.targets.dispatch import Targets
from shared.targets.names import handler_names
from shared.targets.python import PythonTarget
from shared.targets.target import TargetCaller
from shared.telemetry import logger

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

    from shared.store.idempotency import IdempotencyRecords

BATCH_THREADS = 10
HANDLERS = Path(__file__).parent.parent / "handlers"
HTTP_THREADS = 4
SEND_PAUSE = time.sleep


@dataclass(frozen=True)
class Api:
    """What the submit function works with."""

    settings: SubmitSettings
    clock: Clock
    handler_names: frozenset[str]
    submit: SubmitFlow
    batch: BatchFlow
    control: ControlFlow
    again: AgainFlow
    inspect: InspectFlow
    groups: GroupsFlow
    search: SearchFlow
    cursor_secret: CursorSecret
    idempotency: "IdempotencyRecords"

    def new_job_id(self) -> str:
        """A new id: 32 hexadecimal digits."""
        return uuid4().hex


@dataclass(frozen=True)
class Clients:
    """The AWS clients of one process, safe for all its threads."""

    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"


def clients() -> Clients:
    """Clients that give up in time: a stuck call must not hold a tick or a lease."""
    config = Config(
        connect_timeout=2,
        read_timeout=10,
        retries={"mode": "standard", "max_attempts": 4},
        max_pool_connections=BATCH_THREADS + HTTP_THREADS,
    )
    return Clients(boto3.client("dynamodb", config=config), boto3.client("sqs", config=config))


def build_api(settings: SubmitSettings, aws: Clients, clock: Clock, names: frozenset[str]) -> Api:
    """The API's flows over `aws`."""
    # Imported here: tick and execute start without it.
    from shared.store.idempotency import IdempotencyRecords

    table = Table(aws.dynamodb, settings.table, SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs = Jobs(table, settings.shards, retention), Runs(table, retention)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, SEND_PAUSE)
    inspect = InspectFlow(jobs, runs, Shards(table), Overlaps(table, retention))
    requests = RunRequests(table, retention)
    enqueuer = Enqueuer(Journal(table), queue, clock, _token)
    changer = Changer(jobs, enqueuer, settings.horizon_s)
    children, parents = Children(table), Parents(jobs, runs)
    families = Families(jobs, requests, children)
    submit = SubmitFlow(jobs, runs, enqueuer, changer, parents, families, _token)
    batches = JobBatches(table, settings.shards)
    return Api(
        settings=settings,
        clock=clock,
        handler_names=names,
        submit=submit,
        batch=BatchFlow(submit, parents, families, batches, enqueuer, clock, SEND_PAUSE),
        control=ControlFlow(changer, runs, requests, inspect, Waker(jobs, children, queue), _token),
        again=AgainFlow(jobs, runs, requests, enqueuer),
        inspect=inspect,
        groups=GroupsFlow(Groups(table), runs),
        search=SearchFlow(Listing(table), Rows(jobs, runs), clock, settings.ticked_shards),
        cursor_secret=CursorSecret(table, lambda: _token() + _token()),
        idempotency=IdempotencyRecords(aws.dynamodb, settings.table, clock),
    )


def build_tick(settings: TickSettings, aws: Clients, clock: Clock) -> TickFlow:
    """The tick over `aws`."""
    table = Table(aws.dynamodb, settings.table, SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs, journal = Jobs(table, settings.shards, retention), Runs(table, retention), Journal(table)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, SEND_PAUSE)
    return TickFlow(
        jobs=jobs,
        shards=Shards(table),
        claimer=Claimer(jobs, journal, queue, clock),
        recovery=Recovery(jobs, runs, journal, queue),
        clock=clock,
        owner=_environment_id(),
        horizon_s=settings.horizon_s,
    )


def build_execute(settings: ExecuteSettings, aws: Clients, clock: Clock, targets: TargetCaller) -> ExecuteFlow:
    """The executor over `aws`, calling `targets`."""
    table = Table(aws.dynamodb, settings.table, SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs = Jobs(table, 1, retention), Runs(table, retention)  # it only reads jobs, whatever their shards
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, SEND_PAUSE)
    workshop = Workshop(
        jobs=jobs,
        runs=runs,
        dead_letters=DeadLetterQueue(aws.sqs, settings.dead_letter_queue_url),
        targets=targets,
        gates=Gates(
            (
                ParentsGate(Parents(jobs, runs)),
                OverlapGate(Overlaps(table, retention), runs, RunRequests(table, retention)),
                GroupGate(Groups(table), runs),
            )
        ),
        waker=Waker(jobs, Children(table), queue),
        clock=clock,
        fraction=random.random,
        worker_id=_worker_ids(),
        problem=lambda error: logger.warning("an AWS call failed and was got round", exc_info=error),
    )
    return ExecuteFlow(queue, workshop, ThreadPoolExecutor(BATCH_THREADS), RENEW_EVERY_S)


def build_audit(settings: AuditSettings, aws: Clients, clock: Clock) -> AuditFlow:
    """The audit over `aws`."""
    table = Table(aws.dynamodb, settings.table, SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs, journal = Jobs(table, settings.shards, retention), Runs(table, retention), Journal(table)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, SEND_PAUSE)
    return AuditFlow(
        table=table,
        jobs=jobs,
        runs=runs,
        shards=Shards(table),
        claimer=Claimer(jobs, journal, queue, clock),
        recovery=Recovery(jobs, runs, journal, queue),
        journal=journal,
        queue=queue,
        clock=clock,
        token=_token,
        pool=ThreadPoolExecutor(settings.segments),
        segments=settings.segments,
        horizon_s=settings.horizon_s,
    )


@cache
def api() -> Api:
    """Built at cold start from the environment."""
    return build_api(SubmitSettings.from_env(), clients(), SystemClock(), handler_names(HANDLERS))


@cache
def tick() -> TickFlow:
    """Built at cold start from the environment."""
    return build_tick(TickSettings.from_env(), clients(), SystemClock())


@cache
def execute() -> ExecuteFlow:
    """Built at cold start from the environment, with the user's handlers loaded: no lease waits for their imports."""
    python = PythonTarget(HANDLERS)
    python.load()
    return build_execute(ExecuteSettings.from_env(), clients(), SystemClock(), Targets({"python": python}))


@cache
def audit() -> AuditFlow:
    """Built at cold start from the environment."""
    return build_audit(AuditSettings.from_env(), clients(), SystemClock())


def _token() -> str:
    return uuid4().hex


def _worker_ids() -> Callable[[], str]:
    """`<environment>#<n>`: each attempt's own."""
    environment, numbers = _environment_id(), count(1)
    return lambda: f"{environment}#{next(numbers)}"


def _environment_id() -> str:
    """This execution environment: its log stream's last part, so that a run leads to its log; else a new id."""
    stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME", "")
    return stream.rpartition("]")[2] or uuid4().hex
