"""SQS queues in this process's memory, behind a client's methods. A standard queue's rules, on the test's clock.

Messages come in the order in which they become visible; tests that want another order or duplicates make them.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from tests.support import calls
from tests.support.memory_dynamodb import refused

Answer = dict[str, Any]
MAX_HIDDEN = timedelta(hours=12)  # from one receipt


@dataclass
class QueuedMessage:
    """One message of a queue."""

    message_id: str
    body: str
    sent_at: datetime
    visible_at: datetime
    group: str | None = None
    receives: int = 0
    receipt: str | None = None
    received_at: datetime | None = None

    def in_flight(self, now: datetime) -> bool:
        return self.receipt is not None and self.visible_at > now


@dataclass
class MemoryQueue:
    """A queue. `dead_letters` takes what was received more than `max_receives` times."""

    visibility_s: float
    retention: timedelta = timedelta(days=14)
    dead_letters: "MemoryQueue | None" = None
    max_receives: int = 100
    messages: list[QueuedMessage] = field(default_factory=list)

    def next_visible_at(self) -> datetime | None:
        """When the first message comes up; it may be past."""
        return min((message.visible_at for message in self.messages), default=None)


class _Exceptions:
    """As `client.exceptions`: an old receipt is no error here, so nothing ever raises it."""

    class ReceiptHandleIsInvalid(ClientError):  # noqa: N818 - AWS's name
        pass


class MemorySqs:
    """The methods of an SQS client that Duetime and its tests use, over `queues` by URL."""

    exceptions = _Exceptions

    def __init__(self, queues: dict[str, MemoryQueue], now: Callable[[], datetime]) -> None:
        self.queues = queues
        self._now = now
        self._numbers = itertools.count(1)

    def __getattr__(self, name: str) -> Any:
        operation = "".join(part.title() for part in name.split("_"))
        run = getattr(MemorySqs, f"_{name}", None)
        if run is None:
            raise AttributeError(f"the queue in memory does not know {operation}")
        made = functools.partial(calls.through, "sqs", operation, functools.partial(run, self))
        setattr(self, name, made)
        return made

    def _send_message(self, params: Answer) -> Answer:
        return {"MessageId": self._put(params["QueueUrl"], params)}

    def _send_message_batch(self, params: Answer) -> Answer:
        sent = [{"Id": one["Id"], "MessageId": self._put(params["QueueUrl"], one)} for one in params["Entries"]]
        return {"Successful": sent}

    def _put(self, url: str, entry: Answer) -> str:
        now = self._now()
        message_id = f"m{next(self._numbers)}"
        visible_at = now + timedelta(seconds=entry.get("DelaySeconds", 0))
        sent = QueuedMessage(message_id, entry["MessageBody"], now, visible_at, entry.get("MessageGroupId"))
        self.queues[url].messages.append(sent)
        return message_id

    def _receive_message(self, params: Answer) -> Answer:
        queue, now = self.queues[params["QueueUrl"]], self._now()
        queue.messages = [one for one in queue.messages if one.sent_at + queue.retention > now]
        visible = sorted((one for one in queue.messages if one.visible_at <= now), key=lambda one: one.visible_at)
        found = []
        for message in visible[: params.get("MaxNumberOfMessages", 1)]:
            message.receives += 1
            if queue.dead_letters is not None and message.receives > queue.max_receives:
                queue.messages.remove(message)
                queue.dead_letters.messages.append(message)
                continue
            message.receipt = f"r{next(self._numbers)}"
            message.received_at = now
            message.visible_at = now + timedelta(seconds=params.get("VisibilityTimeout", queue.visibility_s))
            found.append(
                {
                    "MessageId": message.message_id,
                    "ReceiptHandle": message.receipt,
                    "Body": message.body,
                    "MD5OfBody": "",
                    "Attributes": _attributes(message),
                }
            )
        return {"Messages": found} if found else {}

    def _delete_message(self, params: Answer) -> Answer:
        queue = self.queues[params["QueueUrl"]]
        # An older receipt's deletion succeeds and deletes nothing (API reference of DeleteMessage).
        queue.messages = [one for one in queue.messages if one.receipt != params["ReceiptHandle"]]
        return {}

    def _delete_message_batch(self, params: Answer) -> Answer:
        for entry in params["Entries"]:
            self._delete_message({"QueueUrl": params["QueueUrl"], "ReceiptHandle": entry["ReceiptHandle"]})
        return {"Successful": [{"Id": entry["Id"]} for entry in params["Entries"]]}

    def _change_message_visibility_batch(self, params: Answer) -> Answer:
        queue, now = self.queues[params["QueueUrl"]], self._now()
        done: list[Answer] = []
        failed: list[Answer] = []
        for entry in params["Entries"]:
            message = next((one for one in queue.messages if one.receipt == entry["ReceiptHandle"]), None)
            visible_at = now + timedelta(seconds=entry["VisibilityTimeout"])
            if message is None or not message.in_flight(now):
                failed.append({"Id": entry["Id"], "SenderFault": True, "Code": "MessageNotInflight"})
            elif message.received_at is not None and visible_at > message.received_at + MAX_HIDDEN:
                failed.append({"Id": entry["Id"], "SenderFault": True, "Code": "InvalidParameterValue"})
            else:
                message.visible_at = visible_at
                done.append({"Id": entry["Id"]})
        return {"Successful": done, **({"Failed": failed} if failed else {})}

    def _change_message_visibility(self, params: Answer) -> Answer:
        entry = {"Id": "0", **params}
        answer = self._change_message_visibility_batch({"QueueUrl": params["QueueUrl"], "Entries": [entry]})
        for failure in answer.get("Failed", []):
            raise refused(failure["Code"], "ChangeMessageVisibility")
        return {}

    def _purge_queue(self, params: Answer) -> Answer:
        self.queues[params["QueueUrl"]].messages.clear()
        return {}

    def _get_queue_attributes(self, params: Answer) -> Answer:
        messages, now = self.queues[params["QueueUrl"]].messages, self._now()
        counts = {
            "": sum(one.visible_at <= now for one in messages),
            "Delayed": sum(one.visible_at > now and one.receipt is None for one in messages),
            "NotVisible": sum(one.in_flight(now) for one in messages),
        }
        return {"Attributes": {f"ApproximateNumberOfMessages{name}": str(count) for name, count in counts.items()}}


def _attributes(message: QueuedMessage) -> dict[str, str]:
    """SQS's own, all of them whatever was asked for."""
    sent_ms = int(message.sent_at.timestamp() * 1000)
    own = {"ApproximateReceiveCount": str(message.receives), "SentTimestamp": str(sent_ms)}
    return own if message.group is None else own | {"MessageGroupId": message.group}
