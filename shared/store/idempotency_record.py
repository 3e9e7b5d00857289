"""The record of one Idempotency-Key: a persistence layer of Powertools idempotency over the one table.

It never reads a job, and never waits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import STATUS_CONSTANTS, DataRecord

from shared.model.errors import ConflictError, InputError
from shared.model.instants import epoch_s, from_sort_text, sort_text
from shared.store import keys
from shared.store.table import ConditionFailedError, Item, Table, number, text

KEPT = timedelta(hours=24)
IN_PROGRESS_S = 30  # the longest that an HTTP API waits for its function: a call older than this has died

_IN_PROGRESS = STATUS_CONSTANTS["INPROGRESS"]
_COMPLETED = STATUS_CONSTANTS["COMPLETED"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the call that holds the record works with."""

    job_id: str  # proposed by the first call with this key
    begun_at: datetime  # when that was
    now: datetime  # when this one's turn came
    taken_over: bool  # the first did not come to an end: its job may be there already


def goes_on(record: Item, now: datetime) -> bool:
    """Whether a call is at work on the record, as far as is known."""
    return bool(record["status"]["S"] == _IN_PROGRESS and from_sort_text(record["lapses_at"]["S"]) > now)


class _Living(DataRecord):
    """A record that the conditions below have found alive, by our clock; Powertools would judge it by the machine's."""

    @property
    def is_expired(self) -> bool:
        return False


class KeyRecord(BasePersistenceLayer):
    """The record of one key, for one try of a call that began at `began`. `met` is what it found of another one."""

    def __init__(self, table: Table, began: datetime, now: datetime, job_id: str, token: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._table = table
        self._began = began
        self._now = now
        self._token = token
        self.turn = Turn(job_id, now, now, taken_over=False)
        self.met: Item | None = None

    def save_inprogress(self, data: dict[str, Any], remaining_time_in_millis: int | None = None) -> None:
        super().save_inprogress(data, IN_PROGRESS_S * 1000)

    def delete_record(self, data: dict[str, Any], exception: Exception) -> None:
        """Free the key if nothing was written; else let it lapse at once: a retry goes on under the same job id."""
        if isinstance(exception, InputError | ConflictError):
            super().delete_record(data, exception)
        else:
            self._lapse(str(self._get_hashed_idempotency_key(data)))

    def _put_record(self, data_record: DataRecord) -> None:
        # call A   put ── job written ── dies
        # call B          put: refused, in progress … looks … 30 s after A began ── take over ── answers A's job
        #
        # Condition of the put:
        #   never_used     no record of this key
        #   kept_enough    its 24 h are over, and only TTL has not removed it yet
        never_used, kept_enough = "attribute_not_exists(#pk)", "#ttl <= :now"
        item = {
            **keys.idempotency_key(data_record.idempotency_key),
            "status": text(_IN_PROGRESS),
            "body_hash": text(data_record.payload_hash),
            "job_id": text(self.turn.job_id),
            "begun_at": text(sort_text(self._now)),
            "holder": text(self._token),
            "lapses_at": text(self._lapses_at),
            keys.TTL_ATTRIBUTE: number(epoch_s(self._now + KEPT)),
        }
        try:
            self._table.put(item, f"{never_used} OR {kept_enough}", {":now": number(epoch_s(self._now))})
        except ConditionFailedError as refused:
            if refused.item is None:  # gone again by now: Powertools tries once more
                raise IdempotencyItemAlreadyExistsError from None
            if refused.item["holder"]["S"] != self._token:
                self._meet(data_record, refused.item)

    def _meet(self, ours: DataRecord, found: Item) -> None:
        """Another call was here first. Take its work over if it died; raises what Powertools expects if it did not."""
        self.met = found
        theirs = _data_record(ours.idempotency_key, found)
        self._validate_payload(ours, theirs)
        if theirs.status != _IN_PROGRESS or goes_on(found, self._now):
            raise IdempotencyItemAlreadyExistsError(old_data_record=theirs)
        # Two retries of a dead call A:  B reads holder A ── update ── works
        #                                C reads holder A ─────────── update: refused → in progress
        # And A, if it was only slow and ends in between, has changed the status.
        still_theirs = "#status = :in_progress AND #holder = :theirs"
        values = {
            ":in_progress": text(_IN_PROGRESS),
            ":theirs": found["holder"],
            ":mine": text(self._token),
            ":lapses_at": text(self._lapses_at),
        }
        update = "SET #holder = :mine, #lapses_at = :lapses_at"
        try:
            self._table.update(keys.idempotency_key(ours.idempotency_key), update, still_theirs, values)
        except ConditionFailedError as refused:
            if refused.item is None or refused.item["holder"]["S"] != self._token:
                raise IdempotencyItemAlreadyExistsError(old_data_record=theirs) from None
        self.turn = Turn(found["job_id"]["S"], from_sort_text(found["begun_at"]["S"]), self._now, taken_over=True)

    def _update_record(self, data_record: DataRecord) -> None:
        values = {":completed": text(_COMPLETED), ":answer": text(data_record.response_data), **self._still_mine_values}
        update = "SET #status = :completed, #answer = :answer"
        self._if_still_mine(
            lambda mine: self._table.update(keys.idempotency_key(data_record.idempotency_key), update, mine, values)
        )

    def _delete_record(self, data_record: DataRecord) -> None:
        key, values = keys.idempotency_key(data_record.idempotency_key), self._still_mine_values
        self._if_still_mine(lambda mine: self._table.delete(key, mine, values))

    def _lapse(self, idempotency_key: str) -> None:
        values = {":gone": text(sort_text(self._now)), **self._still_mine_values}
        self._if_still_mine(
            lambda mine: self._table.update(
                keys.idempotency_key(idempotency_key), "SET #lapses_at = :gone", mine, values
            )
        )

    def _get_record(self, idempotency_key: str) -> DataRecord:
        item = self._table.get(keys.idempotency_key(idempotency_key))
        if item is None:
            raise IdempotencyItemNotFoundError
        self.met = item
        return _data_record(idempotency_key, item)

    @property
    def _lapses_at(self) -> str:
        return sort_text(self._began + timedelta(seconds=IN_PROGRESS_S))

    @property
    def _still_mine_values(self) -> Item:
        return {":in_progress": text(_IN_PROGRESS), ":mine": text(self._token)}

    def _if_still_mine(self, write: Callable[[str], object]) -> None:
        # slow A  put ────────────────────────── job written ── update: refused, and A answers the same job
        # B            … 30 s … take over ── finds the job ── update
        still_mine = "#status = :in_progress AND #holder = :mine"
        try:
            write(still_mine)
        except ConditionFailedError:
            return


def _data_record(idempotency_key: str, item: Item) -> DataRecord:
    return _Living(
        idempotency_key=idempotency_key,
        status=item["status"]["S"],
        response_data=item["answer"]["S"] if "answer" in item else "",
        payload_hash=item["body_hash"]["S"],
    )
