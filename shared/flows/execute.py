"""A batch of messages: runs side by side, kept by leases, then acknowledged or put back. It claims nothing."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from shared.flows import together
from shared.flows.attempt import AttemptFlow
from shared.flows.dead_letter import unreadable_text
from shared.flows.finishes import Finishes
from shared.flows.workshop import Ended, Workshop
from shared.model.instants import EPOCH
from shared.model.job import PRIORITIES, Priority
from shared.model.message import Message
from shared.queue import BadMessageError, JobQueue, message_of
from shared.rules.lease import LEASE_MARGIN_S, LEASE_MAX_S
from shared.rules.waits import is_worn


@dataclass(frozen=True, slots=True)
class Received:
    """A message as SQS handed it over, from the queue of `priority`."""

    message_id: str
    receipt: str
    body: str
    priority: Priority = "normal"
    group: str | None = None
    receive_count: int = 1  # with this time
    sent_at: datetime | None = None

    @classmethod
    def of(
        cls, message_id: str, receipt: str, body: str, attributes: Mapping[str, str], priority: Priority
    ) -> "Received":
        """`attributes` are SQS's own, as the API and Lambda's events name them; one that is missing is not known."""
        sent_ms = attributes.get("SentTimestamp")
        return cls(
            message_id,
            receipt,
            body,
            priority,
            group=attributes.get("MessageGroupId"),
            receive_count=int(attributes.get("ApproximateReceiveCount", 1)),
            sent_at=EPOCH + timedelta(milliseconds=int(sent_ms)) if sent_ms else None,
        )


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of one received message; `error` is set where something went wrong around its attempt."""

    received: Received
    message: Message | None
    ended: Ended
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class ExecuteFlow:
    """Runs batches. `pool` holds at least 10 threads; leases are renewed every `renew_every_s`."""

    queue: JobQueue
    workshop: Workshop
    pool: Executor
    renew_every_s: float

    def run(self, batch: Sequence[Received]) -> list[Handled]:
        """Handle every message of `batch` (at most 10). Those not `done` must be reported to Lambda as failed."""
        handled: list[Handled] = []
        due: list[tuple[Received, Message]] = []
        now = self.workshop.clock.now()
        for received in batch:
            try:
                message = message_of(received.body)
            except BadMessageError as error:
                handled.append(self._unreadable(received, error))
                continue
            wait_s = (message.scheduled_for - now).total_seconds()
            if wait_s > 0:  # clocks differ a little: never early (I3)
                ended = Ended(done=False, back_s=wait_s, outcome="early")
                handled.append(Handled(received, message, self._sent_anew(received, ended)))
            else:
                due.append((received, message))
        early = [(one.received, one.ended.back_s) for one in handled if one.ended.back_s is not None]
        self._hide([*early, *((received, message.lease_s) for received, message in due)])
        return handled + self._attempts(due)

    def _attempts(self, due: Sequence[tuple[Received, Message]]) -> list[Handled]:
        hands_in = len(due) > 1  # who is alone waits for nobody
        held = [
            _Held(received, AttemptFlow(self.workshop, message, received.receive_count, hands_in))
            for received, message in due
        ]
        finishes = Finishes(self.pool, self.workshop.clock.now, self._attempt, self._succeed, self._finish)
        with self._renewing(held):
            together.start(self.workshop, [one.flow for one in held])
            return [
                _handled(one.received, one.flow.message, future)
                for one, future in zip(held, finishes.run(held), strict=True)
            ]

    def _attempt(self, one: "_Held") -> Ended | None:
        """One attempt; None: its success is handed in."""
        return self._settled(one, one.flow.make)

    def _succeed(self, group: Sequence["_Held"]) -> list[bool]:
        return together.succeed(self.workshop, [one.flow for one in group])

    def _finish(self, one: "_Held", is_written: bool) -> Ended | None:
        return self._settled(one, lambda: one.flow.finish(is_written=is_written))

    def _settled(self, one: "_Held", make: Callable[[], Ended | None]) -> Ended | None:
        """What must come back is put back at once: it waits for no slower run of its batch."""
        ended: Ended | None = Ended(done=False)
        try:
            made = make()
            ended = self._sent_anew(one.received, made) if made else None
        finally:
            if ended is not None:
                with one.lock:
                    one.is_back = not ended.done
                    if ended.back_s is not None:
                        self._hide([(one.received, ended.back_s)])
        return ended

    def _sent_anew(self, received: Received, ended: Ended) -> Ended:
        """`ended`, or that a worn message that is to come back is sent anew and has served its purpose.

        After 14 days SQS drops a message, after 1,000 receives it is a dead letter: one that just waits must come to
        neither. A crash between the send and the acknowledgment leaves both; a start's condition voids one.
        """
        now = self.workshop.clock.now()
        if ended.back_s is None or not is_worn(received.receive_count, received.sent_at, now):
            return ended
        try:
            self.queue.send_anew(received.body, received.priority, received.group, ended.back_s)
        except (ClientError, BotoCoreError) as error:  # then it is put back once more
            self.workshop.problem(error)
            return ended
        return replace(ended, done=True, back_s=None)

    @contextmanager
    def _renewing(self, held: Sequence["_Held"]) -> Iterator[None]:
        """While the batch is at work: renew the leases of long attempts, and keep its messages hidden."""
        keeper = _Keeper(held, self._hide, self.renew_every_s)
        thread = threading.Thread(target=keeper.keep, daemon=True)
        thread.start()
        try:
            yield
        finally:
            keeper.over.set()
            thread.join()

    def _hide(self, messages: Sequence[tuple[Received, float]]) -> None:
        # A message whose hiding fails comes back at the queue's own visibility: later than it could, never lost.
        for priority in PRIORITIES:  # Lambda's batches are of one queue each
            own = [(received.receipt, seconds) for received, seconds in messages if received.priority == priority]
            try:
                self.queue.hide(own, priority)
            except (ClientError, BotoCoreError) as error:
                self.workshop.problem(error)

    def _unreadable(self, received: Received, error: BadMessageError) -> Handled:
        """Not one of our messages: kept in the dead-letter queue at once, so that it holds up nobody."""
        try:
            self.workshop.dead_letters.send(unreadable_text(received.body, str(error)))
        except (ClientError, BotoCoreError) as refused:
            return Handled(received, None, Ended(done=False, outcome="unreadable"), refused)
        return Handled(received, None, Ended(done=True, outcome="unreadable"), error)


@dataclass(slots=True)
class _Held:
    """A message in hand. `is_back`: it is the queue's again, and is not hidden any more from here; under `lock`."""

    received: Received
    flow: AttemptFlow
    is_back: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class _Keeper:
    held: Sequence[_Held]
    hide: Callable[[Sequence[tuple[Received, float]]], None]
    every_s: float
    over: threading.Event = field(default_factory=threading.Event)

    def keep(self) -> None:
        lease_s = LEASE_MAX_S + LEASE_MARGIN_S
        while not self.over.wait(self.every_s):
            for one in self.held:
                with one.lock:
                    if not one.is_back:
                        self._renew(one, lease_s)

    def _renew(self, one: _Held, lease_s: int) -> None:
        try:
            one.flow.renew(lease_s)
        except Exception as error:  # noqa: BLE001 - the other nine leases must not suffer
            one.flow.workshop.problem(error)
        self.hide([(one.received, lease_s)])


def _handled(received: Received, message: Message, future: "Future[Ended | None]") -> Handled:
    """One message's end; an unforeseen error is its own alone, and it comes back when its lease is over."""
    try:
        return Handled(received, message, future.result() or Ended(done=False))
    except Exception as error:  # noqa: BLE001 - the other nine messages must not suffer
        return Handled(received, message, Ended(done=False, outcome="error"), error)
