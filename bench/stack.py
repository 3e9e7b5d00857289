"""The system on a local AWS of its own, without Lambda, driven by hand; and its requests, kept. It measures nothing."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from shared.model.job import Job, JobSpec, Schedule, Target
from shared.rules.sharding import shard_of
from shared.store.codec import job_item
from shared.wiring import base
from tests.support import aws as stand_in
from tests.support import emulator
from tests.support.aws import Aws
from tests.support.clocks import ManualClock
from tests.support.emulator import Emulator
from tests.support.jobs import a_job
from tests.support.world import World

START = datetime(2026, 11, 30, 11, 58, tzinfo=UTC)
DUE = START + timedelta(seconds=240)  # within the default horizon
PAYLOAD = '{"order":"%s"}' % ("x" * 300)

Call = tuple[str, str, dict[str, Any]]  # service, operation as the client names it, parameters


class Kept:
    """A client that keeps what it is asked, and asks the one that it stands for."""

    def __init__(self, service: str, client: Any, kept: list[Call]) -> None:
        self._service, self._client, self._kept = service, client, kept

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._client, name)
        if not callable(operation):
            return operation

        def asked(**params: Any) -> Any:
            self._kept.append((self._service, name, params))
            return operation(**params)

        setattr(self, name, asked)  # the next look-up is an ordinary one
        return asked


@contextlib.contextmanager
def emulator_running() -> Iterator[tuple[Emulator, base.Clients]]:
    """An emulator on loopback, and clients of it set up as the functions have them."""
    own = {
        "AWS_DEFAULT_REGION": stand_in.REGION,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "POWERTOOLS_TRACE_DISABLED": "true",
        "POWERTOOLS_SERVICE_NAME": "duetime",
    }
    os.environ.update(own)
    with emulator.running() as server:
        os.environ["AWS_ENDPOINT_URL"] = server.url
        yield server, base.clients()


@contextlib.contextmanager
def fresh(clients: base.Clients) -> Iterator[Aws]:
    """A table and queues that nothing was written to; deleted at the end."""
    aws = stand_in.create("emulator", clients.dynamodb, clients.sqs)
    try:
        yield aws
    finally:
        stand_in.delete(aws)


def world_of(aws: Aws, shards: int = 1, kept: list[Call] | None = None, clock: Any = None) -> World:
    """The system over `aws`, at START unless it has its own `clock`; its requests are appended to `kept`."""
    if kept is not None:
        keeping: Any = {"dynamodb": Kept("dynamodb", aws.dynamodb, kept), "sqs": Kept("sqs", aws.sqs, kept)}
        aws = replace(aws, **keeping)
    return World(aws, clock or ManualClock(START), shards=shards)


def job(number: int, due: datetime = DUE, schedule: Schedule | None = None) -> Job:
    """An ordinary job, submitted at START: 300 bytes of payload, a name."""
    job_id = f"bench-{number:08d}"
    spec = JobSpec(
        job_id=job_id,
        name="an ordinary job",
        target=Target(kind="python", params={"handler": "demo.echo"}),
        payload=PAYLOAD,
        schedule=schedule or Schedule(run_at=due),
    )
    return a_job(spec.schedule, START, job_id=job_id, spec=spec, due_at=due)


def write_jobs(aws: Aws, jobs: Iterable[Job], shards: int = 1) -> None:
    """Put jobs into the table as submits leave them, 25 a request."""
    for some in batches((job_item(one, shard_of(one.job_id, shards)) for one in jobs), 25):
        requests: Any = [{"PutRequest": {"Item": item}} for item in some]
        aws.dynamodb.batch_write_item(RequestItems={aws.table: requests})


def batches(many: Iterable[Any], size: int) -> Iterator[Sequence[Any]]:
    """`many`, `size` at a time."""
    rest = iter(many)
    while some := list(islice(rest, size)):
        yield some
