"""Who depends on a job: the links to them, and the flags that say there are some. It never decides what may run.

All of it only makes a child look sooner: one too many, or one that is missing, loses nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from shared.model.instants import epoch_s
from shared.rules.lifecycle import TERMINAL
from shared.store import keys
from shared.store.jobs import STATEMENTS
from shared.store.table import Item, Table, number, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef


@dataclass(frozen=True, slots=True)
class Link:
    """Job `child` depends on job `parent`; of use until `until`."""

    parent: str
    child: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Children:
    """The links and flags in `table`."""

    table: Table

    def link(self, links: Sequence[Link]) -> None:
        """Write them, before their children are written."""
        items = [
            {**keys.child_key(link.parent, link.child), keys.TTL_ATTRIBUTE: number(epoch_s(link.until))}
            for link in links
        ]
        self.table.put_many(items)

    def of(self, parent: str, limit: int) -> Iterator[list[str]]:
        """The ids of the jobs that depend on `parent`, `limit` a page."""
        pages = self.table.query(
            "#pk = :pk AND begins_with(#sk, :child)",
            {":pk": text(keys.job_pk(parent)), ":child": text(keys.CHILD_PREFIX)},
            limit=limit,
        )
        return ([keys.child_of(item[keys.SK]["S"]) for item in items] for items, _ in pages)

    def flag(self, job_ids: Sequence[str]) -> None:
        """Have jobs say that others depend on them. One that is gone by now stays so."""
        self._flag([keys.job_key(job_id) for job_id in job_ids], ())

    def mark(self, runs: Sequence[tuple[str, datetime]]) -> None:
        """Have runs say so that are there and not over: their executors may have read the jobs before."""
        self._flag([keys.run_key(job_id, moment) for job_id, moment in runs], sorted(TERMINAL))

    def _flag(self, found: Sequence[Item], not_in: Sequence[str]) -> None:
        """What a statement is answered is of no matter: who is not flagged wakes nobody, and they look themselves."""
        clauses = "".join(' AND "status"<>?' for _ in not_in)
        update = f'UPDATE "{self.table.name}" SET "has_children"=? WHERE "{keys.PK}"=? AND "{keys.SK}"=?{clauses}'
        statements: list[BatchStatementRequestTypeDef] = [
            {
                "Statement": update,
                "Parameters": [{"BOOL": True}, key[keys.PK], key[keys.SK], *(text(status) for status in not_in)],
            }
            for key in found
        ]
        for start in range(0, len(statements), STATEMENTS):
            self.table.client.batch_execute_statement(Statements=statements[start : start + STATEMENTS])
