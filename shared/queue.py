"""The queues between claim and run, one a priority, and the dead-letter queue. It never reads or writes the table.

AWS's limits (SQS quotas page): a delay is 0 to 900 whole seconds, a visibility 0 to 43,200 s from the receipt,
a batch has at most 10 entries whose ids are letters, digits, `-`, `_`; a MessageGroupId is 1 to 128 letters, digits and
punctuation. On a standard queue it is the key of a fair queue: it puts nothing in order, and a delay goes with it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from shared.clock import Clock
from shared.model.errors import DuetimeError
from shared.model.instants import from_text, to_text
from shared.model.job import PRIORITIES, Priority
from shared.model.message import Message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

MAX_DELAY_S = 900
MAX_HIDE_S = 39_600  # 11 h: under the 12 h that a message may be hidden after one receipt
BATCH = 10
SEND_TRIES = 4
LETTERS_HIDDEN_S = 60


class SendError(DuetimeError):
    """Messages that SQS did not take, after several tries; their journal page stays and is recovered."""


class BadMessageError(DuetimeError):
    """A body that is not one of our messages."""


class UnknownQueueError(DuetimeError):
    """Messages came from a queue that is none of ours: a mapping too many feeds the executor."""


@dataclass(frozen=True, slots=True)
class JobQueue:
    """A queue for each priority, at `urls`. `pause(seconds)` is called between two tries of a refused entry."""

    client: "SQSClient"
    urls: Mapping[Priority, str]
    clock: Clock
    pause: Callable[[float], None]

    def send(self, messages: Sequence[Message]) -> None:
        """Send each, by its priority, so that it is received at its second, never before; none twice once it is taken.

        Raises SendError. The most urgent go first: a queue that takes no more holds up none above it.
        """
        for priority in PRIORITIES:
            own = [message for message in messages if message.priority == priority]
            for start in range(0, len(own), BATCH):
                self._send_batch(self.urls[priority], own[start : start + BATCH])

    def send_anew(self, body: str, priority: Priority, group: str | None, wait_s: float) -> None:
        """Send what was received as a message of its own, to come after `wait_s`, or after 900 s if that is longer."""
        fair = {} if group is None else {"MessageGroupId": group}
        delay = whole_s(wait_s, MAX_DELAY_S)
        self.client.send_message(QueueUrl=self.urls[priority], MessageBody=body, DelaySeconds=delay, **fair)  # type: ignore[arg-type]

    def hide(self, receipts: Sequence[tuple[str, float]], priority: Priority = "normal") -> None:
        """Make messages that came from the queue of `priority` come back: (receipt handle, in seconds), at most 10.

        One that cannot be changed any more (its receipt is old) comes back by itself.
        """
        entries = [
            {"Id": str(place), "ReceiptHandle": handle, "VisibilityTimeout": hidden_s(seconds)}
            for place, (handle, seconds) in enumerate(receipts)
        ]
        if entries:
            self.client.change_message_visibility_batch(QueueUrl=self.urls[priority], Entries=entries)  # type: ignore[arg-type]

    def priority_of(self, arn: str) -> Priority:
        """Whose messages the queue of this ARN carries. Raises UnknownQueueError."""
        name = arn.rpartition(":")[2]
        for priority, url in self.urls.items():
            if url.rpartition("/")[2] == name:
                return priority
        raise UnknownQueueError(f"messages came from {arn}, which is none of {', '.join(self.urls.values())}")

    def _send_batch(self, url: str, messages: Sequence[Message]) -> None:
        # Entry ids are places in the batch: a job's own id may hold characters that SQS refuses, or come twice.
        left = dict(enumerate(messages))
        for attempt in range(SEND_TRIES):
            if attempt:
                self.pause(0.05 * 4**attempt)
            try:
                answer = self.client.send_message_batch(QueueUrl=url, Entries=list(self._entries(left)))
            except (ClientError, BotoCoreError) as error:
                raise SendError(f"SQS did not take {len(left)} messages: {error}") from error
            # An entry in neither list of the answer counts as not taken.
            for taken in answer.get("Successful", []):
                left.pop(int(taken["Id"]), None)
            if not left:
                return
        raise SendError(f"SQS did not take {len(left)} of {len(messages)} messages after {SEND_TRIES} tries")

    def _entries(self, messages: dict[int, Message]) -> Iterator["SendMessageBatchRequestEntryTypeDef"]:
        now = self.clock.now()  # at the send, not at the start of the tick: a stale clock would make it late
        for place, message in messages.items():
            entry: SendMessageBatchRequestEntryTypeDef = {
                "Id": str(place),
                "MessageBody": message_text(message),
                "DelaySeconds": delay_s(message.scheduled_for, now),
            }
            if message.group is not None:
                entry["MessageGroupId"] = message.group
            yield entry


@dataclass(frozen=True, slots=True)
class Letter:
    """A message of the dead-letter queue, as it was received."""

    message_id: str
    receipt: str
    body: str


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """Where a run goes whose attempts are used up, with all that is known of it."""

    client: "SQSClient"
    url: str

    def send(self, body: str) -> None:
        """Put one JSON text there."""
        self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def receive(self) -> list[Letter]:
        """Up to 10 letters, hidden for a minute. None may mean that there are none on the servers that were asked."""
        answer = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=BATCH, VisibilityTimeout=LETTERS_HIDDEN_S
        )
        return [Letter(one["MessageId"], one["ReceiptHandle"], one["Body"]) for one in answer.get("Messages", [])]

    def remove(self, letters: Sequence[Letter]) -> None:
        """Take received letters off. One that stays comes again."""
        for entries in _receipts(letters):
            self.client.delete_message_batch(QueueUrl=self.url, Entries=entries)  # type: ignore[arg-type]

    def show(self, letters: Sequence[Letter]) -> None:
        """Make received letters visible again at once."""
        for entries in _receipts(letters):
            shown = [{**entry, "VisibilityTimeout": 0} for entry in entries]
            self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=shown)  # type: ignore[arg-type]


def _receipts(letters: Sequence[Letter]) -> Iterator[list[dict[str, str]]]:
    for start in range(0, len(letters), BATCH):
        batch = letters[start : start + BATCH]
        yield [{"Id": str(place), "ReceiptHandle": letter.receipt} for place, letter in enumerate(batch)]


def delay_s(due: datetime, now: datetime) -> int:
    """Whole seconds to wait from `now` so that nothing comes before `due`: 0 to 900."""
    return whole_s((due - now) / timedelta(seconds=1), MAX_DELAY_S)


def hidden_s(seconds: float) -> int:
    """A visibility that SQS takes: whole seconds, 0 to 11 h; a longer wait is hidden again when it comes back."""
    return whole_s(seconds, MAX_HIDE_S)


def whole_s(seconds: float, most: int) -> int:
    """Whole seconds, not less than `seconds` unless that is over `most`."""
    return max(0, min(most, ceil(seconds)))


def message_text(message: Message) -> str:
    """The body of `message`, a contract with executors of later versions."""
    body: dict[str, object] = {
        "job_id": message.job_id,
        "scheduled_for": to_text(message.scheduled_for),
        "revision": message.revision,
        "fence": message.fence,
        "lease_s": message.lease_s,
    }
    if message.skip is not None:
        body["skip"] = message.skip
    if message.woken:
        body["woken"] = True
    if message.missed is not None and message.missed_until is not None:
        body |= {"missed": message.missed, "missed_until": to_text(message.missed_until)}
    return json.dumps(body, separators=(",", ":"))


def message_of(body: str) -> Message:
    """The reverse of `message_text`. Raises BadMessageError for any other text."""
    try:
        fields = json.loads(body)
        return Message(
            job_id=_string(fields["job_id"]),
            scheduled_for=from_text(fields["scheduled_for"]),
            revision=int(fields["revision"]),
            fence=int(fields["fence"]),
            lease_s=int(fields["lease_s"]),
            skip=fields.get("skip"),
            missed=fields.get("missed"),
            missed_until=from_text(fields["missed_until"]) if fields.get("missed_until") else None,
            woken=bool(fields.get("woken", False)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadMessageError(f"not a message of this queue: {error!r}") from None


def _string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"job_id is {value!r}")
    return value
