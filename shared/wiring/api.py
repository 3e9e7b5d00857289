"""Builds what the submit function works with. It decides nothing."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cache

from shared.clock import Clock, SystemClock
from shared.flows.again import AgainFlow
from shared.flows.batch import BatchFlow
from shared.flows.changing import Changer
from shared.flows.control import ControlFlow
from shared.flows.dependencies import Parents
from shared.flows.enqueue import Enqueuer
from shared.flows.families import Families, Waker
from shared.flows.groups import GroupsFlow
from shared.flows.inspect import InspectFlow
from shared.flows.rows import Rows
from shared.flows.search import SearchFlow
from shared.flows.submit import SubmitFlow
from shared.queue import JobQueue
from shared.settings import SubmitSettings
from shared.store.children import Children
from shared.store.cursor_secret import CursorSecret
from shared.store.groups import Groups
from shared.store.idempotency import IdempotencyRecords
from shared.store.job_batches import JobBatches
from shared.store.jobs import Jobs
from shared.store.journal import Journal
from shared.store.listing import Listing
from shared.store.overlaps import Overlaps
from shared.store.run_history import RunHistory
from shared.store.run_requests import RunRequests
from shared.store.runs import Runs
from shared.store.shards import Shards
from shared.store.table import Table
from shared.targets.names import handler_names
from shared.wiring import base


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
    idempotency: IdempotencyRecords

    def new_job_id(self) -> str:
        """A new id: 32 hexadecimal digits."""
        return base.token()


def build_api(settings: SubmitSettings, aws: base.Clients, clock: Clock, names: frozenset[str]) -> Api:
    """The API's flows over `aws`."""
    table = Table(aws.dynamodb, settings.table, base.SEND_PAUSE)
    retention = timedelta(days=settings.retention_days)
    jobs, runs, history = Jobs(table, settings.shards, retention), Runs(table, retention), RunHistory(table)
    queue = JobQueue(aws.sqs, settings.queue_urls, clock, base.SEND_PAUSE)
    inspect = InspectFlow(jobs, runs, history, Shards(table), Overlaps(table, retention), settings.ticked_shards)
    requests = RunRequests(table, retention)
    enqueuer = Enqueuer(Journal(table), queue, clock, base.token)
    changer = Changer(jobs, enqueuer, settings.horizon_s)
    children, parents = Children(table), Parents(jobs, runs, history)
    families = Families(children, retention)
    submit = SubmitFlow(jobs, runs, history, enqueuer, changer, parents, families, base.token)
    batches = JobBatches(table, settings.shards)
    return Api(
        settings=settings,
        clock=clock,
        handler_names=names,
        submit=submit,
        batch=BatchFlow(submit, parents, families, batches, enqueuer, clock, base.SEND_PAUSE),
        control=ControlFlow(changer, runs, history, requests, inspect, Waker(jobs, children, queue), base.token),
        again=AgainFlow(jobs, runs, history, requests, enqueuer),
        inspect=inspect,
        groups=GroupsFlow(Groups(table), runs),
        search=SearchFlow(Listing(table), Rows(jobs, runs), clock, settings.ticked_shards),
        cursor_secret=CursorSecret(table, lambda: base.token() + base.token()),
        idempotency=IdempotencyRecords(aws.dynamodb, settings.table, clock, base.SEND_PAUSE),
    )


@cache
def api() -> Api:
    """Built at cold start from the environment."""
    return build_api(SubmitSettings.from_env(), base.clients(), SystemClock(), handler_names(base.HANDLERS))
