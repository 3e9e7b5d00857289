"""Each limit on requests to SQS: the last value that AWS takes passes, the next one does not (C49, C53, C55)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.submit.request import JOB_ID_PATTERN
from tests.support.aws_rules import problems

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/jobs"
KIB_256 = 262_144


def found(operation: str, **params: Any) -> list[str]:
    return problems("sqs", operation, {"QueueUrl": URL, **params})


def send(**params: Any) -> list[str]:
    return found("SendMessage", **{"MessageBody": "{}", **params})


def entries(*given: dict[str, Any]) -> list[str]:
    return found("SendMessageBatch", Entries=[{"Id": str(n), "MessageBody": "{}", **e} for n, e in enumerate(given)])


@pytest.mark.parametrize("delay", [0, 1, 900])
def test_delays_that_pass(delay: int) -> None:
    assert send(DelaySeconds=delay) == []
    assert entries({"DelaySeconds": delay}) == []


@pytest.mark.parametrize("delay", [-1, 901, 3600, True, False, 1.0, 0.5, "5", None])
def test_delays_that_fail_alone_and_in_batches(delay: object) -> None:
    [alone] = send(DelaySeconds=delay)
    [in_batch] = entries({"DelaySeconds": 0}, {"DelaySeconds": delay})
    assert "DelaySeconds must be a whole number from 0 to 900" in alone
    assert in_batch.startswith("entry 1: DelaySeconds")


@pytest.mark.parametrize("entry_id", ["0", "a" * 80, "A-z_9"])
def test_entry_ids_that_pass(entry_id: str) -> None:
    assert entries({"Id": entry_id}) == []


@pytest.mark.parametrize("entry_id", ["", "a:b/c", "job.1", "a" * 81, "é", "a b", "a\n", "١"])
@pytest.mark.parametrize("operation", ["SendMessageBatch", "ChangeMessageVisibilityBatch", "DeleteMessageBatch"])
def test_entry_ids_that_fail(operation: str, entry_id: str) -> None:
    entry = {"Id": entry_id, "MessageBody": "{}", "ReceiptHandle": "r", "VisibilityTimeout": 0}
    [problem] = found(operation, Entries=[entry])
    assert "batch entry id" in problem


def test_entry_ids_are_distinct() -> None:
    assert any("distinct" in problem for problem in entries({"Id": "a"}, {"Id": "a"}))


@pytest.mark.parametrize(("count", "passes"), [(0, False), (1, True), (10, True), (11, False)])
def test_entries_of_a_batch(count: int, passes: bool) -> None:
    assert (entries(*[{}] * count) == []) is passes


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ("", False),
        ("x", True),
        ("\t\n\r \ud7ff\ue000\ufffd\U00010000\U0010ffff", True),
        ("\x00", False),
        ("\x0b", False),
        ("\x1b", False),
        ("\ufffe", False),
        ("\uffff", False),
        ("\ud800", False),
        ("x" * KIB_256, True),
        ("x" * (KIB_256 + 1), False),
        ("語" * (KIB_256 // 3 + 1), False),
    ],
)
def test_bodies(body: str, passes: bool) -> None:
    assert (send(MessageBody=body) == []) is passes
    assert (entries({"MessageBody": body}) == []) is passes


def test_a_batch_is_limited_as_a_whole() -> None:
    assert entries({"MessageBody": "x" * (KIB_256 - 1)}, {"MessageBody": "x"}) == []
    [problem] = entries({"MessageBody": "x" * KIB_256}, {"MessageBody": "x"})
    assert "together" in problem
    assert entries(*[{"MessageBody": "x" * 200_000}] * 10) != []


def test_attributes_count_too() -> None:
    attribute = {"name": {"DataType": "String", "StringValue": "value"}}  # 4 + 6 + 5 bytes
    assert send(MessageBody="x" * (KIB_256 - 15), MessageAttributes=attribute) == []
    assert send(MessageBody="x" * (KIB_256 - 14), MessageAttributes=attribute) != []


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({str(n): {"DataType": "String", "StringValue": "v"} for n in range(11)}, "at most 10 attributes"),
        ({"a": {"DataType": "String", "StringValue": ""}}, "must not be empty"),
    ],
)
def test_attributes(attributes: dict[str, Any], problem: str) -> None:
    assert problem in send(MessageAttributes=attributes)[0]


def test_deduplication_is_for_fifo_queues() -> None:
    assert "FIFO" in send(MessageDeduplicationId="x")[0]


@pytest.mark.parametrize(
    ("group", "passes"),
    [("a", True), ('!"#~`', True), ("x" * 128, True), ("x" * 129, False), ("", False), ("é", False)],
)
def test_a_group_is_128_of_ascii_on_any_queue(group: str, passes: bool) -> None:
    assert (send(MessageGroupId=group, DelaySeconds=900) == []) is passes
    entry = {"Id": "0", "MessageBody": "x", "MessageGroupId": group, "DelaySeconds": 900}
    assert (found("SendMessageBatch", Entries=[entry]) == []) is passes


@given(st.from_regex(JOB_ID_PATTERN, fullmatch=True))
def test_every_group_that_the_api_takes_is_one_that_sqs_takes(group: str) -> None:
    assert send(MessageGroupId=group) == []


@pytest.mark.parametrize(
    ("timeout", "passes"), [(0, True), (43_200, True), (43_201, False), (-1, False), (True, False), (1.5, False)]
)
def test_visibility(timeout: object, passes: bool) -> None:
    change = {"ReceiptHandle": "r", "VisibilityTimeout": timeout}
    assert (found("ChangeMessageVisibility", **change) == []) is passes
    assert (found("ChangeMessageVisibilityBatch", Entries=[{"Id": "0", **change}]) == []) is passes
    assert (found("ReceiveMessage", VisibilityTimeout=timeout) == []) is passes


def test_visibility_in_a_batch_must_be_said() -> None:
    assert "is missing" in found("ChangeMessageVisibilityBatch", Entries=[{"Id": "0", "ReceiptHandle": "r"}])[0]


@pytest.mark.parametrize(
    ("params", "passes"),
    [
        ({"MaxNumberOfMessages": 1}, True),
        ({"MaxNumberOfMessages": 10}, True),
        ({"MaxNumberOfMessages": 0}, False),
        ({"MaxNumberOfMessages": 11}, False),
        ({"WaitTimeSeconds": 20}, True),
        ({"WaitTimeSeconds": 21}, False),
    ],
)
def test_receiving(params: dict[str, Any], passes: bool) -> None:
    assert (found("ReceiveMessage", **params) == []) is passes
