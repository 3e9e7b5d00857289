"""First starts and successes of several runs, each kind in one request. What one of them did not get is for store.runs.

PartiQL statements in one BatchExecuteStatement, each judged alone. The AWS pages: "PartiQL insert statements for
DynamoDB", "PartiQL update statements for DynamoDB", "Running batch operations with PartiQL for DynamoDB".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from shared.model.instants import sort_text
from shared.model.message import Message
from shared.model.run import Attempt, Run, RunStatus
from shared.store import keys
from shared.store.codec import attempts_value, run_of
from shared.store.runs import Runs, Success
from shared.store.table import Item, number, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef

# The clauses of store.runs, in PartiQL. The first of _MAY_START, _ABSENT, is INSERT's own: DuplicateItem if it fails.
_MINE = '"status"=? AND "attempt"=? AND "attempts"[{last}]."worker"=?'
_NOT_AWAITED = '"has_children" IS MISSING'

_JUDGED = ("ConditionalCheckFailed", "DuplicateItem")  # a statement's own condition: nothing went wrong


class StatementRefusedError(Exception):
    """DynamoDB did not take a statement of a batch, for another reason than its condition."""


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The start of a run that has most likely none yet; `worker_id` is new for each (see `Runs.start`)."""

    message: Message
    worker_id: str


@dataclass(frozen=True, slots=True)
class RunBatches:
    """The runs of `runs`, several to a request: at most 25, and each run once.

    `problem` is told why a statement was refused: it is got round, but should it always be, every batch pays for it.
    """

    runs: Runs
    problem: Callable[[Exception], None]

    def start(self, starts: Sequence[FirstStart], now: datetime) -> list[Run | None]:
        """Begin first attempts. None: not begun, or not known to be: `Runs.start` with the same worker_id tells."""
        #   A:  INSERT ── made                            B:  INSERT ── DuplicateItem → Runs.start → put back (I2)
        #   A:  INSERT ── made, its answer is lost ── Runs.start finds its own worker_id: begun
        items = [self._first_item(start, now) for start in starts]
        taken = self._taken([self._insert(item) for item in items])
        return [run_of(item) if is_taken else None for item, is_taken in zip(items, taken, strict=True)]

    def succeed(self, successes: Sequence[Success]) -> list[bool]:
        """Write the ends of attempts. False: not written, or not known to be: `Runs.succeed` tells."""
        #   zombie:   lease over ──────────────── UPDATE: _MINE fails → Runs.succeed → LeaseLostError (I2, I4)
        #   another:              start (2)
        #   submit of a child: marks the run ──── UPDATE: _NOT_AWAITED fails → Runs.succeed, and wake the child
        return self._taken([self._update(success) for success in successes])

    def _taken(self, statements: "Sequence[BatchStatementRequestTypeDef]") -> list[bool]:
        answer = self.runs.table.client.batch_execute_statement(Statements=statements)
        for error in (response["Error"] for response in answer["Responses"] if "Error" in response):
            if error.get("Code") not in _JUDGED:
                self.problem(StatementRefusedError(f"{error.get('Code')}: {error.get('Message')}"))
        return ["Error" not in response for response in answer["Responses"]]

    def _first_item(self, start: FirstStart, now: datetime) -> Item:
        message = start.message
        lease = now + timedelta(seconds=message.lease_s)
        opened = Attempt(attempt=1, worker_id=start.worker_id, started_at=now, lease_expires_at=lease)
        return {
            **keys.run_key(message.job_id, message.scheduled_for),
            "status": text(RunStatus.RUNNING),
            "revision": number(message.revision),
            "lease_expires_at": text(sort_text(lease)),
            keys.TTL_ATTRIBUTE: self.runs.ttl(now),
            "attempt": number(1),
            "attempts": attempts_value((opened,)),
        }

    def _insert(self, item: Item) -> "BatchStatementRequestTypeDef":
        fields = ", ".join(f"'{name}': ?" for name in item)
        statement = f'INSERT INTO "{self.runs.table.name}" VALUE {{{fields}}}'
        return {"Statement": statement, "Parameters": list(item.values())}

    def _update(self, success: Success) -> "BatchStatementRequestTypeDef":
        run, sets = success.run, self.runs.ending_well(success)
        key, last = keys.run_key(run.job_id, run.scheduled_for), len(run.attempts) - 1
        mine = (text(RunStatus.RUNNING), number(run.attempt), text(run.attempts[last].worker_id))
        statement = (
            f'UPDATE "{self.runs.table.name}"'
            + "".join(f' SET "{name}"=?' for name in sets)
            + f' REMOVE "lease_expires_at" WHERE "{keys.PK}"=? AND "{keys.SK}"=?'
            + f" AND {_MINE.format(last=last)} AND {_NOT_AWAITED}"
        )
        return {"Statement": statement, "Parameters": [*sets.values(), key[keys.PK], key[keys.SK], *mine]}
