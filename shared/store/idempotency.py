"""What an Idempotency-Key was answered: the same to all who come with the key and the same body. It never reads a job.

The record holds the id of the job that its first call is to make: whoever takes a call over that died half-way works
under the same id, so that no second job comes of it. Who comes while another call goes on waits for its answer.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)

from shared.clock import Clock
from shared.model.errors import IdempotencyInProgressError, IdempotencyMismatchError
from shared.model.instants import from_sort_text
from shared.store import keys
from shared.store.idempotency_record import KEPT, KeyRecord, Turn, goes_on
from shared.store.table import Item, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WAIT_S = 20  # for the answer of another call; what is left of the function's time is for one's own work, if it died
PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)  # between two looks; the last again and again
STILL_GOING_ON = "the first call with this Idempotency-Key is still going on"

__all__ = ["Answer", "IdempotencyRecords", "Turn"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the call answered; `replayed` when it was an earlier one."""

    text: str
    replayed: bool


class IdempotencyRecords:
    """The records of all callers' keys. One caller's key never meets another's."""

    def __init__(
        self, client: "DynamoDBClient", table_name: str, clock: Clock, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._table = Table(client, table_name)
        self._clock = clock
        self._pause = pause

    def once(
        self,
        *,
        caller: str,
        key: str,
        body: str,
        job_id: str,
        token: str,
        now: datetime,
        call: Callable[[Turn], str],
    ) -> Answer:
        """What `call` answers, once for each `key` of `caller`; `job_id` is the id to use if this is the first time.

        `now` is when the caller's request came, and `token` names this very call, so that it knows its own writes when
        AWS's client has sent them twice. While another call with the same key goes on, its answer is waited for; where
        that one frees the key or dies, this one takes its turn.
        A refusal by `call` (InputError, ConflictError) frees the key: nothing was written. Raises
        IdempotencyMismatchError when the key came with another `body` before, IdempotencyInProgressError when there
        was no answer in time.
        """
        request = {"caller": caller, "key": key, "body": body}
        wait = _Wait(self._table, self._clock, self._pause, now)
        record = KeyRecord(self._table, now, now, job_id, token)
        while True:
            try:
                return self._once(record, request, call)
            except _GoingOnError:
                wait.for_end_of(record.met)
            record = KeyRecord(self._table, now, max(now, self._clock.now()), job_id, token)

    def _once(self, record: "KeyRecord", request: dict[str, str], call: Callable[[Turn], str]) -> Answer:
        config = IdempotencyConfig(
            event_key_jmespath="[caller, key]",
            payload_validation_jmespath="body",
            raise_on_no_idempotency_key=True,
            expires_after_seconds=int(KEPT.total_seconds()),
            hash_function="sha256",
            response_hook=lambda answer, _: Answer(str(answer), replayed=True),
        )

        def answer(*, request: dict[str, str]) -> str:
            del request  # only the record is found by it
            return call(record.turn)

        once = idempotent_function(
            answer, data_keyword_argument="request", persistence_store=record, config=config, key_prefix="idem"
        )
        try:
            result = once(request=request)
        except IdempotencyValidationError:
            raise IdempotencyMismatchError("this Idempotency-Key was used with another body before") from None
        except (IdempotencyAlreadyInProgressError, IdempotencyInconsistentStateError):
            raise _GoingOnError from None
        except IdempotencyPersistenceLayerError as error:
            raise error.__cause__ or error from None
        return result if isinstance(result, Answer) else Answer(str(result), replayed=False)


class _GoingOnError(Exception):
    """Another call holds the record."""


class _Wait:
    """The patience of one call with those before it: WAIT_S from `began` on, by the clock and by what it slept."""

    def __init__(self, table: Table, clock: Clock, pause: Callable[[float], None], began: datetime) -> None:
        self._table, self._clock, self._pause = table, clock, pause
        self._until = began + timedelta(seconds=WAIT_S)
        self._slept_s = 0.0
        self._looks = 0

    def for_end_of(self, met: Item | None) -> None:
        """Return when the record `met` is answered, free, or its call dead. Raises IdempotencyInProgressError."""
        while True:
            now = self._clock.now()
            pause_s = PAUSES_S[min(self._looks, len(PAUSES_S) - 1)]
            if self._slept_s + pause_s > WAIT_S or now + timedelta(seconds=pause_s) > self._until:
                raise IdempotencyInProgressError(STILL_GOING_ON, _left_s(met, now))
            self._pause(pause_s)
            self._slept_s += pause_s
            self._looks += 1
            met = self._table.get({keys.PK: met[keys.PK], keys.SK: met[keys.SK]}) if met else None
            if met is None or not goes_on(met, self._clock.now()):
                return


def _left_s(record: Item | None, now: datetime) -> int:
    """Whole seconds after which the record's call has answered or died."""
    left_s = (from_sort_text(record["lapses_at"]["S"]) - now).total_seconds() if record else 0
    return max(1, math.ceil(left_s))
