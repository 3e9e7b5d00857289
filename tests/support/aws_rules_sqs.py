"""AWS's limits on requests to SQS. It only says what is wrong; aws_rules raises it."""

import re
from collections.abc import Iterator
from typing import Any

_API = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
# Delay of at most 15 minutes, batches of 10, the characters of a body, 10 attributes, visibility of at most 12 h.
QUOTAS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"
SEND = _API + "API_SendMessage.html"
ENTRY = _API + "API_SendMessageBatchRequestEntry.html"
VISIBILITY = _API + "API_ChangeMessageVisibility.html"
RECEIVE = _API + "API_ReceiveMessage.html"

DELAY_S = range(900 + 1)
VISIBILITY_S = range(43_200 + 1)
WAIT_S = range(20 + 1)
MAX_ENTRIES = 10
MAX_ATTRIBUTES = 10
MAX_BYTES = 262_144  # 1 MiB since August 2025 in most regions; 256 KiB is right in all of them
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")  # ASCII: `\w` would let accents through
_GROUP_ID = re.compile(r"[!-~]{1,128}")  # on a standard queue the key of a fair queue; a delay goes with it
_NOT_ALLOWED = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def problems(operation: str, params: dict[str, Any]) -> Iterator[str]:
    if operation == "SendMessage":
        yield from _message(params, params, "")
        yield from _total([params])
    elif operation == "SendMessageBatch":
        yield from _entries(params)
        for index, entry in enumerate(params["Entries"]):
            yield from _message(entry, params, f"entry {index}: ")
        yield from _total(params["Entries"])
    elif operation == "ChangeMessageVisibility":
        yield from _visibility(params, "", required=True)
    elif operation == "ChangeMessageVisibilityBatch":
        yield from _entries(params)
        for index, entry in enumerate(params["Entries"]):
            yield from _visibility(entry, f"entry {index}: ", required=True)
    elif operation == "DeleteMessageBatch":
        yield from _entries(params)
    elif operation == "ReceiveMessage":
        yield from _whole(params, "MaxNumberOfMessages", range(1, MAX_ENTRIES + 1), RECEIVE)
        yield from _whole(params, "WaitTimeSeconds", WAIT_S, RECEIVE)
        yield from _visibility(params, "", required=False)


def _whole(params: dict[str, Any], name: str, allowed: range, page: str, where: str = "") -> Iterator[str]:
    """`name`, if it is there, must be a whole number of this range; True is none, though Python thinks so."""
    value = params.get(name)
    if name in params and (type(value) is not int or value not in allowed):
        yield f"{where}{name} must be a whole number from {allowed[0]} to {allowed[-1]}, not {value!r} ({page})"


def _visibility(params: dict[str, Any], where: str, *, required: bool) -> Iterator[str]:
    if required and "VisibilityTimeout" not in params:
        yield f"{where}VisibilityTimeout is missing ({VISIBILITY})"
    yield from _whole(params, "VisibilityTimeout", VISIBILITY_S, VISIBILITY, where)


def _entries(params: dict[str, Any]) -> Iterator[str]:
    entries = params["Entries"]
    if not 1 <= len(entries) <= MAX_ENTRIES:
        yield f"a batch has 1 to {MAX_ENTRIES} entries, not {len(entries)} ({QUOTAS})"
    ids = [entry["Id"] for entry in entries]
    for bad in [i for i in ids if not _ENTRY_ID.fullmatch(i)]:
        yield f"a batch entry id is 1 to 80 of A-Z a-z 0-9 - _, not {bad!r} ({ENTRY})"
    if len(set(ids)) < len(ids):
        yield f"batch entry ids must be distinct in the batch, not {ids} ({ENTRY})"


def _message(message: dict[str, Any], request: dict[str, Any], where: str) -> Iterator[str]:
    yield from _whole(message, "DelaySeconds", DELAY_S, SEND, where)
    body = message["MessageBody"]
    if not body:
        yield f"{where}MessageBody must have at least one character ({SEND})"
    found = _NOT_ALLOWED.search(body)
    if found:
        yield f"{where}MessageBody holds {found[0]!r}, which SQS does not take ({QUOTAS})"
    attributes = message.get("MessageAttributes", {})
    if len(attributes) > MAX_ATTRIBUTES:
        yield f"{where}a message has at most {MAX_ATTRIBUTES} attributes, not {len(attributes)} ({QUOTAS})"
    for name, value in attributes.items():
        if not (value.get("StringValue") or value.get("BinaryValue")):
            yield f"{where}attribute {name} must not be empty ({SEND})"
    group = message.get("MessageGroupId")
    if group is not None and not _GROUP_ID.fullmatch(group):
        yield f"{where}MessageGroupId is 1 to 128 letters, digits and punctuation, not {group!r} ({SEND})"
    if "MessageDeduplicationId" in message and not request["QueueUrl"].endswith(".fifo"):
        yield f"{where}MessageDeduplicationId is for FIFO queues only ({SEND})"


def message_bytes(message: dict[str, Any]) -> int:
    """Body and attributes, their names, types and values, in UTF-8 bytes: what the size limit counts."""
    size = _bytes(message["MessageBody"])
    for name, value in message.get("MessageAttributes", {}).items():
        size += _bytes(name) + _bytes(value["DataType"])
        size += _bytes(value.get("StringValue", "")) + len(value.get("BinaryValue", b""))
    return size


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _total(messages: list[dict[str, Any]]) -> Iterator[str]:
    total = sum(message_bytes(message) for message in messages)
    if total > MAX_BYTES:
        yield f"the messages of one request hold at most {MAX_BYTES} bytes together, not {total} ({QUOTAS})"
