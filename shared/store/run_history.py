"""A job's runs by their times: the newest, the open, the dead-lettered, those of a span. It never writes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.model.run import Run, RunStatus
from shared.store import keys
from shared.store.codec import read_all, run_of, span_of
from shared.store.table import Item, Table, text

_INSTANT = timedelta(microseconds=1)
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The history of each job in `table`."""

    table: Table

    def newest(self, job_id: str, limit: int, before: datetime | None = None) -> list[Run]:
        """The latest runs, newest first; with `before`, those scheduled before it."""
        found: list[Run] = []
        for items, _ in self._pages(job_id, limit, before):
            found += [run_of(item) for item in items]
            if len(found) >= limit:
                break
        return found[:limit]

    def spans(self, job_id: str, first: datetime, last: datetime) -> list[tuple[datetime, datetime]]:
        """What the runs from `first` to `last` stand for, and the run before them: each from its time to the last
        occurrence that it covers (most often its own).
        """
        bounds = {
            ":pk": text(keys.job_pk(job_id)),
            ":first": text(keys.run_sk(first)),
            ":last": text(keys.run_sk(last)),
        }
        items, _ = next(self._pages(job_id, 1, before=first))
        for more, _ in self.table.query("#pk = :pk AND #sk BETWEEN :first AND :last", bounds):
            items = items + more
        return [span_of(item) for item in items]

    def open(self, job_id: str, pages: int) -> list[Run]:
        """The runs that are not over, in the newest `pages` pages of 1 MB."""
        states = (RunStatus.RUNNING, RunStatus.FAILED, RunStatus.ENQUEUED)
        values = {f":{status}": text(status) for status in states}
        found: list[Run] = []
        for place, (items, _) in enumerate(
            self._pages(job_id, None, None, only="#status IN (:running, :failed, :enqueued)", values=values)
        ):
            found += [run_of(item) for item in items]
            if place + 1 >= pages:
                break
        return found

    def dead_lettered(self, job_id: str, limit: int, pages: int = 10, first_revision: int = 1) -> list[Run]:
        """Dead-lettered runs of the job, newest first: of the newest `pages` pages of 1 MB, and then by the index.

        The index lags by a moment, and does not have what release 0.1.0 wrote. Without those of revisions before
        `first_revision`.
        """
        found: list[Run] = []
        values = {":dead": text(RunStatus.DEAD_LETTERED)}
        for place, (items, end) in enumerate(self._pages(job_id, None, None, only="#status = :dead", values=values)):
            found += _since(first_revision, map(run_of, items))
            if len(found) < limit and end is not None and place + 1 >= pages:
                before = keys.scheduled_for_of(end[keys.SK]["S"])
                found += self._dead_before(job_id, before, limit - len(found), first_revision)
            if len(found) >= limit or place + 1 >= pages:
                break
        return found[:limit]

    def _dead_before(self, job_id: str, before: datetime, limit: int, first_revision: int) -> list[Run]:
        values = {
            ":list_key": text(keys.dead_list_key(keys.dead_part_of(job_id))),
            ":first": text(keys.dead_list_at(job_id, _EARLIEST)),
            ":last": text(keys.dead_list_at(job_id, before - _INSTANT)),
        }
        condition = "#list_key = :list_key AND #list_at BETWEEN :first AND :last"
        found: list[Run] = []
        pages = self.table.query(condition, values, index=keys.LIST_INDEX, newest_first=True, limit=limit)
        for items, _ in pages:
            wanted = [keys.run_key(job_id, keys.scheduled_for_of(item[keys.SK]["S"])) for item in items]
            there = read_all(self.table.get_many(wanted), run_of)[0]
            found += _since(first_revision, (run for run in there if run.status is RunStatus.DEAD_LETTERED))
            if len(found) >= limit:
                break
        return sorted(found, key=lambda run: run.scheduled_for, reverse=True)

    def _pages(
        self,
        job_id: str,
        limit: int | None,
        before: datetime | None,
        *,
        only: str | None = None,
        values: Item | None = None,
    ) -> Iterator[tuple[list[Item], Item | None]]:
        last = keys.run_sk(before - _INSTANT) if before is not None else keys.RUNS_END
        condition = "#pk = :pk AND #sk BETWEEN :first AND :last"
        bounds = {":pk": text(keys.job_pk(job_id)), ":first": text(keys.RUN_PREFIX), ":last": text(last)}
        return self.table.query(condition, {**bounds, **(values or {})}, newest_first=True, limit=limit, only=only)


def _since(revision: int, runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.revision >= revision]
