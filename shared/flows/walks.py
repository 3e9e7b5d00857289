"""The ways through the table that lists take: each in an order in which no job that is there is missed or met twice.

A position is the last place that was looked at, and holds when what was there is gone. It never decides what fits.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.flows.inspect import JobView
from shared.flows.rows import Rows
from shared.model.instants import from_sort_text, sort_text
from shared.model.job import Job, JobStatus
from shared.model.run import RunStatus
from shared.rules.listing import ListQuery
from shared.store import keys
from shared.store.listing import DueJob, Listing

Position = tuple[str | int, ...]  # of a walk's own making; JSON can hold it

INDEX_READ = 100  # keys of one read of an index, where not each of them will be shown: what one BatchGetItem takes
SCAN_READS = (100, 400, 1000, 1000, 1000, 1000)  # items of each read of the table in one call


class PositionError(Exception):
    """A position that this walk has not made."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one read came to: the jobs that fit, each with the position after it, and the position after all."""

    found: Sequence[tuple[JobView, Position]]
    after: Position | None


class Walk(Protocol):
    """One kind of list. `reads`: the most reads of one call."""

    @property
    def reads(self) -> int: ...

    def step(self, query: ListQuery, position: Position | None, number: int, wanted: int, now: datetime) -> Step:
        """Read number `number` of this call, of which `wanted` more jobs would do. Raises PositionError."""


@dataclass(frozen=True, slots=True)
class GroupWalk:
    """The jobs of a group by (created_at, job_id), the newest first: neither ever changes."""

    listing: Listing
    rows: Rows
    reads: int = 10

    def step(self, query: ListQuery, position: Position | None, number: int, wanted: int, now: datetime) -> Step:
        before = None if position is None else _texts(position, 1)[0]
        is_plain = query == ListQuery(group=query.group)
        part = self.listing.group(query.group or "", before, wanted if is_plain else INDEX_READ)
        rows = self.rows.of_ids(query, [entry.job_id for entry in part.entries], now)
        found = [(rows[entry.job_id], (entry.list_at,)) for entry in part.entries if entry.job_id in rows]
        return Step(found, (part.entries[-1].list_at,) if part.more else None)


@dataclass(frozen=True, slots=True)
class DeadWalk:
    """Jobs with a dead-lettered run: part by part, in each by job id. A job is shown at the first such run."""

    listing: Listing
    rows: Rows
    reads: int = 2 * keys.DEAD_PARTS

    def step(self, query: ListQuery, position: Position | None, number: int, wanted: int, now: datetime) -> Step:
        place, after = (0, None) if position is None else _numbered(position, keys.DEAD_PARTS)
        is_plain = query == ListQuery(status=RunStatus.DEAD_LETTERED)
        part = self.listing.dead(place, after, wanted if is_plain else INDEX_READ)
        # The index may still show a run that was redriven just now.
        seen = self.rows.runs.get_many([(entry.job_id, entry.scheduled_for) for entry in part.entries])
        dead = {run.job_id for run in seen if run.status is RunStatus.DEAD_LETTERED}
        rows = self.rows.of_ids(query, list(dead), now)
        found: list[tuple[JobView, Position]] = [
            (rows[job_id], (place, keys.after_dead_of(job_id)))
            for job_id in dict.fromkeys(entry.job_id for entry in part.entries)
            if job_id in rows
        ]
        return Step(found, self._after(place, part.entries[-1].list_at if part.more else None, dead))

    @staticmethod
    def _after(place: int, last: str | None, dead: Set[str]) -> Position | None:
        if last is None:
            return (place + 1, "") if place + 1 < keys.DEAD_PARTS else None
        # A job that was shown is passed with all its runs; of another one, further runs may be what is looked for.
        job_id = last.partition("#")[0]
        return (place, keys.after_dead_of(job_id) if job_id in dead else last)


@dataclass(frozen=True, slots=True)
class DueWalk:
    """Jobs that wait for a minute of the window: minute by minute, in each shard by shard, in each by due time.

    A job moves only ahead here. One that has moved further within the window since the index was read is met again.
    """

    listing: Listing
    rows: Rows
    shards: int
    reads: int = 300

    def step(self, query: ListQuery, position: Position | None, number: int, wanted: int, now: datetime) -> Step:
        since, until = query.due_from, query.due_to
        if since is None or until is None or since >= until:
            return Step((), None)
        minute, shard, after = self._place(position, keys.bucket_of(since))
        is_plain = query == ListQuery(due_from=since, due_to=until)
        part = self.listing.due(minute, shard, (since, until), after, wanted if is_plain else INDEX_READ)
        rows = self.rows.of_ids(query, [entry.job_id for entry in part.entries], now)
        found = [
            (rows[entry.job_id], _due_position(minute, shard, entry))
            for entry in part.entries
            if entry.job_id in rows and not _comes_later(rows[entry.job_id].job, entry.due_at, until)
        ]
        if part.more:
            return Step(found, _due_position(minute, shard, part.entries[-1]))
        shard += 1
        if shard >= self.shards:
            minute, shard = minute + keys.BUCKET, 0
        return Step(found, _due_position(minute, shard, None) if minute < until else None)

    @staticmethod
    def _place(position: Position | None, first: datetime) -> tuple[datetime, int, DueJob | None]:
        if position is None:
            return first, 0, None
        minute, due_at, job_id = _texts((position[0], *position[2:]), 3)
        shard = position[1] if len(position) > 1 else None
        if not isinstance(shard, int):
            raise PositionError(f"{shard!r} is no shard")
        try:
            return from_sort_text(minute), shard, DueJob(job_id, from_sort_text(due_at)) if job_id else None
        except ValueError as error:
            raise PositionError(f"{position}: {error}") from None


@dataclass(frozen=True, slots=True)
class ScanWalk:
    """All items of the table by the hash of their keys, which never changes. It begins with a short read."""

    listing: Listing
    rows: Rows
    reads: int = len(SCAN_READS)

    def step(self, query: ListQuery, position: Position | None, number: int, wanted: int, now: datetime) -> Step:
        after = None
        if position is not None:
            pk, sk = _texts(position, 2)
            after = (pk, sk)
        scanned = self.listing.scan(after, SCAN_READS[number])
        rows = self.rows.of_jobs(query, scanned.jobs, now)
        found = [(rows[job.job_id], (keys.job_pk(job.job_id), keys.JOB)) for job in scanned.jobs if job.job_id in rows]
        return Step(found, scanned.end)


def _due_position(minute: datetime, shard: int, last: DueJob | None) -> Position:
    return (sort_text(minute), shard, sort_text(last.due_at) if last else "", last.job_id if last else "")


def _comes_later(job: Job, seen_at: datetime, until: datetime) -> bool:
    return job.status is JobStatus.SCHEDULED and job.due_at is not None and seen_at < job.due_at < until


def _texts(position: Position, count: int) -> list[str]:
    texts = [part for part in position if isinstance(part, str)]
    if len(position) != count or len(texts) != count:
        raise PositionError(f"{position} is not a position of this list")
    return texts


def _numbered(position: Position, numbers: int) -> tuple[int, str | None]:
    number, *rest = position
    if not isinstance(number, int) or not 0 <= number < numbers:
        raise PositionError(f"{position} is not a position of this list")
    return number, _texts(tuple(rest), 1)[0] or None
