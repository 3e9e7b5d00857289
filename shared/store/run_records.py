"""A persistence layer of Powertools idempotency over the run item: one effect an occurrence, at no extra write.

The start of an attempt is the "in progress" record, its end the "completed" one, and what a failure leaves is for the
caller to say (`undo`). It never decides what a failure means.
"""

from collections.abc import Callable
from typing import TypeVar

from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer, IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.base import IdempotencyHandler
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import STATUS_CONSTANTS, DataRecord

from shared.model.instants import to_text
from shared.model.message import Message
from shared.model.run import Result, Run
from shared.rules.lifecycle import is_over
from shared.store.runs import StartRefusedError

T = TypeVar("T")
_CONFIG = IdempotencyConfig()


class RunRecord(BasePersistenceLayer):
    """The record of one message's run. `refused` is the run that did not let it start."""

    def __init__(
        self,
        message: Message,
        start: Callable[[], Run],
        succeed: Callable[[Result], None],
        undo: Callable[[Exception], None],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refused: Run | None = None
        self._message = message
        self._start = start
        self._succeed = succeed
        self._undo = undo
        self._result: Result | None = None
        self._exception: Exception | None = None

    def run_once(self, effect: Callable[[], Result]) -> Result | None:
        """Start the run, call `effect`, write its end. None when the run could not start: `refused` says why.

        An exception of `effect` goes to `undo` and then to the caller; so does one of the writes, unwrapped.
        """
        handler = IdempotencyHandler(
            function=effect,
            function_payload=None,
            config=_CONFIG,
            persistence_store=self,
            function_args=(),
            function_kwargs={},
        )
        try:
            result: Result | None = handler.handle()
        except IdempotencyAlreadyInProgressError:
            return None
        except IdempotencyPersistenceLayerError as wrapped:
            raise wrapped.__cause__ or wrapped from None
        return result

    def _get_hashed_idempotency_key(self, data: object) -> str:
        return f"{self._message.job_id}/{to_text(self._message.scheduled_for)}"

    def save_inprogress(self, data: object, remaining_time_in_millis: int | None = None) -> None:
        self._put_record(DataRecord(self._get_hashed_idempotency_key(data), STATUS_CONSTANTS["INPROGRESS"]))

    def save_success(self, data: object, result: object) -> None:
        self._result = result if isinstance(result, Result) else None
        self._update_record(DataRecord(self._get_hashed_idempotency_key(data), STATUS_CONSTANTS["COMPLETED"]))

    def delete_record(self, data: object, exception: Exception) -> None:
        self._exception = exception
        self._delete_record(DataRecord(self._get_hashed_idempotency_key(data)))

    def _put_record(self, data_record: DataRecord) -> None:
        try:
            self._start()
        except StartRefusedError as refused:
            self.refused = refused.run
            status = STATUS_CONSTANTS["COMPLETED" if is_over(refused.run.status) else "INPROGRESS"]
            there = DataRecord(data_record.idempotency_key, status)
            raise IdempotencyItemAlreadyExistsError(old_data_record=there) from None

    def _update_record(self, data_record: DataRecord) -> None:
        if self._result is not None:
            self._succeed(self._result)

    def _delete_record(self, data_record: DataRecord) -> None:
        if self._exception is not None:
            self._undo(self._exception)

    def _get_record(self, idempotency_key: str) -> DataRecord:
        # Never asked for: a refused start hands the record over (see _put_record).
        raise IdempotencyItemNotFoundError(idempotency_key)
