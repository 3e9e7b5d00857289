"""New jobs, 25 to a request, each judged alone. It never replaces a job and never decides what a refusal means.

PartiQL `INSERT`s in one BatchExecuteStatement: one whose key is taken gives DuplicateItem, and changes nothing. The AWS
pages: "PartiQL insert statements for DynamoDB", "Running batch operations with PartiQL for DynamoDB".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from shared.model.errors import DuetimeError
from shared.model.job import Job
from shared.rules.sharding import shard_of
from shared.store.codec import job_item, payload_item
from shared.store.jobs import STATEMENTS
from shared.store.table import Item, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef, BatchStatementResponseTypeDef

_TAKES_NO_MORE = frozenset(
    {"ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded", "TransactionConflict"}
)


class InsertOutcome(Enum):
    """What became of one new job."""

    MADE = "made"
    EXISTS = "exists"  # a job of this id is there; it may be this very one, where a first answer was lost
    THROTTLED = "throttled"  # not made
    UNSURE = "unsure"  # made or not


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made; `ttl`: when it may be removed."""

    job: Job
    ttl: datetime | None


@dataclass(frozen=True, slots=True)
class JobBatches:
    """Makes the jobs of `table`, spread over `shards`."""

    table: Table
    shards: int

    def put_payloads(self, jobs: Sequence[Job]) -> None:
        """The payloads of those that have one apart, before the jobs themselves (see `Jobs`)."""
        self.table.put_many(
            [
                payload_item(job.job_id, job.payload_id, job.spec.payload, job.created_at)
                for job in jobs
                if job.payload_id
            ]
        )

    def insert(self, jobs: Sequence[NewJob]) -> list[InsertOutcome]:
        """Make up to 25 jobs of different ids, in one request."""
        answer = self.table.client.batch_execute_statement(
            Statements=[self._statement(new) for new in jobs[:STATEMENTS]]
        )
        return [_outcome(response) for response in answer["Responses"]]

    def _statement(self, new: NewJob) -> "BatchStatementRequestTypeDef":
        #   submit A:  insert ── made                   two submits of one id: one of them becomes the job
        #   submit B:  insert ── DuplicateItem
        item: Item = job_item(new.job, shard_of(new.job.job_id, self.shards), new.ttl)
        fields = ", ".join(f"'{name}': ?" for name in item)
        return {"Statement": f'INSERT INTO "{self.table.name}" VALUE {{{fields}}}', "Parameters": list(item.values())}


def _outcome(response: "BatchStatementResponseTypeDef") -> InsertOutcome:
    code = response.get("Error", {}).get("Code")
    if code is None:
        return InsertOutcome.MADE
    if code == "DuplicateItem":
        return InsertOutcome.EXISTS
    if code in _TAKES_NO_MORE:
        return InsertOutcome.THROTTLED
    if code == "InternalServerError":
        return InsertOutcome.UNSURE
    raise DuetimeError(f"an INSERT was refused with {code}: {response.get('Error', {}).get('Message')}")
