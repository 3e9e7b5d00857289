"""A batch of messages: runs side by side, kept by leases, then acknowledged or put back. It claims nothing."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from shared.flows.attempt import AttemptFlow, Ended, Workshop
from shared.flows.dead_letter import unreadable_text
from shared.model.message import Message
from shared.queue import BadMessageError, JobQueue, message_of
from shared.rules.lease import LEASE_MARGIN_S, LEASE_MAX_S


@dataclass(frozen=True, slots=True)
class Received:
    """A message as SQS handed it over."""

    message_id: str
    receipt: str
    body: str


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
                handled.append(Handled(received, message, Ended(done=False, back_s=wait_s, outcome="early")))
            else:
                due.append((received, message))
        early = [(one.received.receipt, one.ended.back_s) for one in handled if one.ended.back_s is not None]
        self._hide([*early, *((received.receipt, message.lease_s) for received, message in due)])
        return handled + self._attempts(due)

    def _attempts(self, due: Sequence[tuple[Received, Message]]) -> list[Handled]:
        held = [_Held(received, AttemptFlow(self.workshop, message)) for received, message in due]
        with self._renewing(held):
            futures = [(one, self.pool.submit(self._attempt, one)) for one in held]
            return [_handled(one.received, one.flow.message, future) for one, future in futures]

    def _attempt(self, one: "_Held") -> Ended:
        """One attempt. What must come back is put back at once: it waits for no slower run of its batch."""
        ended = Ended(done=False)
        try:
            ended = one.flow.make()
        finally:
            with one.lock:
                one.is_back = not ended.done
                if ended.back_s is not None:
                    self._hide([(one.received.receipt, ended.back_s)])
        return ended

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

    def _hide(self, receipts: Sequence[tuple[str, float]]) -> None:
        # A message whose hiding fails comes back at the queue's own visibility: later than it could, never lost.
        try:
            self.queue.hide(receipts)
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
    hide: Callable[[Sequence[tuple[str, float]]], None]
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
        except (ClientError, BotoCoreError) as error:
            one.flow.workshop.problem(error)
        self.hide([(one.received.receipt, lease_s)])


def _handled(received: Received, message: Message, future: "Future[Ended]") -> Handled:
    """One message's end; an unforeseen error is its own alone, and it comes back when its lease is over."""
    try:
        return Handled(received, message, future.result())
    except Exception as error:  # noqa: BLE001 - the other nine messages must not suffer
        return Handled(received, message, Ended(done=False, outcome="error"), error)
