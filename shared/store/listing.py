"""The reads behind lists: one page of an index, or of the table, from a place on. It never decides what a list holds.

A place is made of the keys of what was read last. It holds when that is gone by now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from shared.model.instants import from_sort_text, sort_text
from shared.model.job import Job
from shared.store import keys
from shared.store.codec import job_of, read_all
from shared.store.table import Item, Table, text

Entry = TypeVar("Entry")
_LAST_INSTANT = keys.BUCKET - timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Part(Generic[Entry]):
    """What one read found, in order; `more`: there may be others after it."""

    entries: Sequence[Entry]
    more: bool


@dataclass(frozen=True, slots=True)
class InGroup:
    """A job of a group, as the index shows it."""

    job_id: str
    list_at: str


@dataclass(frozen=True, slots=True)
class DeadRun:
    """A dead-lettered run, as the index shows it."""

    job_id: str
    scheduled_for: datetime
    list_at: str


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job that waits for a tick, as the index shows it."""

    job_id: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Scanned:
    """The jobs of one page of the table, and the key that it ended at (None: at the table's end)."""

    jobs: Sequence[Job]
    end: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The indexes of `table`. They lag by a moment: what they show is to be read again."""

    table: Table

    def group(self, group: str, before: str | None, limit: int) -> Part[InGroup]:
        """Jobs of a group, the newest first; with `before`, those whose `list_at` lies before it."""
        items, more = self._lists(keys.group_list_key(group), "<", before, limit, newest_first=True)
        return Part([InGroup(_job_id(item), item[keys.LIST_AT]["S"]) for item in items], more)

    def dead(self, part: int, after: str | None, limit: int) -> Part[DeadRun]:
        """Dead-lettered runs of one part, by job; with `after`, those whose `list_at` lies after it."""
        items, more = self._lists(keys.dead_list_key(part), ">", after, limit)
        return Part(
            [
                DeadRun(_job_id(item), keys.scheduled_for_of(item[keys.SK]["S"]), item[keys.LIST_AT]["S"])
                for item in items
            ],
            more,
        )

    def due(
        self, minute: datetime, shard: int, window: tuple[datetime, datetime], after: DueJob | None, limit: int
    ) -> Part[DueJob]:
        """Jobs of `shard` due in `minute` and from `window[0]` on, before `window[1]`; those after `after`, in time."""
        since, until = window
        first, last = max(since, minute), min(until - timedelta(microseconds=1), minute + _LAST_INSTANT)
        values = {
            ":minute": text(keys.due_key(minute, shard)),
            ":first": text(sort_text(first)),
            ":last": text(sort_text(last)),
        }
        start = None
        if after is not None:
            at = {keys.DUE_KEY: values[":minute"], keys.DUE_AT: text(sort_text(after.due_at))}
            start = {**keys.job_key(after.job_id), **at}
        condition = "#due_key = :minute AND #due_at BETWEEN :first AND :last"
        items, end = next(self.table.query(condition, values, index=keys.DUE_INDEX, limit=limit, start=start))
        return Part([DueJob(_job_id(item), from_sort_text(item[keys.DUE_AT]["S"])) for item in items], end is not None)

    def scan(self, after: tuple[str, str] | None, limit: int) -> Scanned:
        """The jobs among the `limit` items that follow the key `after`, read consistently."""
        start = {keys.PK: text(after[0]), keys.SK: text(after[1])} if after else None
        items, end = self.table.scan_some(limit, start, "#sk = :job", {":job": text(keys.JOB)})
        jobs, _ = read_all(items, job_of)
        return Scanned(jobs, (end[keys.PK]["S"], end[keys.SK]["S"]) if end else None)

    def _lists(
        self, list_key: str, beyond: str, place: str | None, limit: int, *, newest_first: bool = False
    ) -> tuple[list[Item], bool]:
        condition, values = "#list_key = :list_key", {":list_key": text(list_key)}
        if place is not None:
            condition += f" AND #list_at {beyond} :place"
            values[":place"] = text(place)
        pages = self.table.query(condition, values, index=keys.LIST_INDEX, limit=limit, newest_first=newest_first)
        items, end = next(pages)
        return items, end is not None


def _job_id(item: Item) -> str:
    return keys.job_id_of(item[keys.PK]["S"])
