"""Who has the place of a job whose runs may not overlap, in one item a job. It never decides (rules.overlap does)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.model.instants import epoch_s, from_sort_text, sort_text
from shared.model.job import Job
from shared.rules.overlap import Place
from shared.store import keys
from shared.store.table import ConditionFailedError, Item, Table, number, text

_ABSENT = "attribute_not_exists(#pk)"
_AS_SEEN = "#writes = :seen"


class PlaceChangedError(Exception):
    """Another run of the job has written since the place was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRecord:
    """The place of a job, and what was skipped for it.

    `version`: of the job under which all runs going on were looked for; those that start since then ask for the place.
    """

    place: Place = field(default_factory=Place)
    version: int = 0
    skipped: int = 0
    last_skipped: datetime | None = None
    writes: int = 0


@dataclass(frozen=True, slots=True)
class Overlaps:
    """The places of the jobs of `table`, kept for `retention` after their last write."""

    table: Table
    retention: timedelta

    def get(self, job: Job) -> PlaceRecord:
        """The place of a job. Nothing was skipped of it that a job before it under the same id left out."""
        item = self.table.get(keys.overlap_key(job.job_id))
        if item is None:
            return PlaceRecord()
        is_own = item["created_at"]["S"] == sort_text(job.created_at)
        earlier, displaced = _moments(item, "earlier"), _moments(item, "displaced")
        return PlaceRecord(
            place=Place(_moment(item, "holder"), _moment(item, "waiting"), earlier, displaced),
            version=int(item["version"]["N"]),
            skipped=int(item["skipped"]["N"]) if is_own else 0,
            last_skipped=_moment(item, "last_skipped"),
            writes=int(item["writes"]["N"]),
        )

    def write(self, job: Job, record: PlaceRecord, now: datetime) -> None:
        """Write `record`, made of the one that was read. Raises PlaceChangedError.

        A write whose answer was lost raises it too: who reads again finds its own.
        """
        #   run 12:05:  reads (3), finds 12:00 dead-lettered ──────────── takes the place: _AS_SEEN fails (it is 4)
        #   run 12:00:         redriven, started: takes the place (4), is called
        #
        #   both of two new runs:  read that nobody has the place; the second to write it fails, and reads again
        item: Item = {
            **keys.overlap_key(job.job_id),
            "created_at": text(sort_text(job.created_at)),
            "version": number(record.version),
            "skipped": number(record.skipped),
            "writes": number(record.writes + 1),
            keys.TTL_ATTRIBUTE: number(epoch_s(now + self.retention)),
        }
        place = record.place
        one = (("holder", place.holder), ("waiting", place.waiting), ("last_skipped", record.last_skipped))
        some = (("earlier", place.earlier), ("displaced", place.displaced))
        item |= {name: text(sort_text(moment)) for name, moment in one if moment is not None}
        item |= {name: {"SS": sorted(map(sort_text, moments))} for name, moments in some if moments}
        try:
            if record.writes:
                self.table.put(item, _AS_SEEN, {":seen": number(record.writes)})
            else:
                self.table.put(item, _ABSENT)
        except ConditionFailedError:
            raise PlaceChangedError(job.job_id) from None


def _moment(item: Item, name: str) -> datetime | None:
    return from_sort_text(item[name]["S"]) if name in item else None


def _moments(item: Item, name: str) -> frozenset[datetime]:
    return frozenset(map(from_sort_text, item[name]["SS"])) if name in item else frozenset()
