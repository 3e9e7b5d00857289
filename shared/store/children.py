"""The links from a job to those that depend on it: whom to wake when it is over. It never decides whether one may run.

A link only makes a child look sooner; one too many, or one that is missing, loses nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.model.instants import epoch_s
from shared.store import keys
from shared.store.table import Table, number, text


@dataclass(frozen=True, slots=True)
class Link:
    """Job `child` depends on job `parent`; of use until `until`."""

    parent: str
    child: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Children:
    """The links in `table`."""

    table: Table

    def link(self, links: Sequence[Link]) -> None:
        """Write them, before their children are written."""
        self.table.put_many(
            [
                {**keys.child_key(link.parent, link.child), keys.TTL_ATTRIBUTE: number(epoch_s(link.until))}
                for link in links
            ]
        )

    def of(self, parent: str, limit: int) -> Iterator[list[str]]:
        """The ids of the jobs that depend on `parent`, `limit` a page."""
        pages = self.table.query(
            "#pk = :pk AND begins_with(#sk, :child)",
            {":pk": text(keys.job_pk(parent)), ":child": text(keys.CHILD_PREFIX)},
            limit=limit,
        )
        return ([keys.child_of(item[keys.SK]["S"]) for item in items] for items, _ in pages)
