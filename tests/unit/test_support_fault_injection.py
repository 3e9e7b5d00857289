"""Faults strike just the calls that were named, before or after their effect, and say so when they never struck."""

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support import fault_injection as faults
from tests.support.aws import Aws, all_items, visible_messages
from tests.support.fault_injection import cut_off, throttled
from tests.support.faults import CrashError

pytestmark = pytest.mark.backends("moto", "emulator")


def put(aws: Aws, number: int) -> None:
    aws.dynamodb.put_item(TableName=aws.table, Item={"pk": {"S": f"job#{number}"}, "sk": {"S": "job"}})


def items(aws: Aws) -> list[str]:
    return [item["pk"]["S"] for item in all_items(aws)]


def send(aws: Aws, count: int) -> dict:
    entries = [{"Id": str(n), "MessageBody": str(n)} for n in range(count)]
    return aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=entries)


def test_before_the_effect(aws: Aws) -> None:
    with faults.injected() as broken:
        broken.before("dynamodb:PutItem", throttled(), nth=2, times=2)
        put(aws, 1)
        for number in (2, 3):
            with pytest.raises(ClientError, match="ThrottlingException"):
                put(aws, number)
        put(aws, 4)
    assert items(aws) == ["job#1", "job#4"]


def test_after_the_effect(aws: Aws) -> None:
    with faults.injected() as broken:
        broken.after("dynamodb:PutItem", cut_off())
        with pytest.raises(ReadTimeoutError):
            put(aws, 1)
        put(aws, 2)
    assert items(aws) == ["job#1", "job#2"]


def test_a_crash_at_any_call_goes_past_every_handler(aws: Aws) -> None:
    def product() -> None:
        try:
            put(aws, 1)
            send(aws, 1)
            put(aws, 2)
        except Exception:  # noqa: BLE001  the point
            pytest.fail("a crash was caught as an Exception")

    with faults.injected() as broken:
        broken.after("*", CrashError("here"), nth=2)
        with pytest.raises(CrashError):
            product()
    assert items(aws) == ["job#1"]
    assert visible_messages(aws) == [0]


def test_only_the_calls_meant(aws: Aws) -> None:
    with faults.injected() as broken:
        broken.before("*", throttled(), when=lambda call: call.params.get("Item", {}).get("pk") == {"S": "job#2"})
        put(aws, 1)
        with pytest.raises(ClientError):
            put(aws, 2)
    assert items(aws) == ["job#1"]


def test_a_fault_that_never_struck_is_an_error() -> None:
    with (
        pytest.raises(AssertionError, match=r"sqs:\*, number 3, never came: 0 calls matched"),
        faults.injected() as broken,
    ):
        broken.before("sqs:*", throttled(), nth=3)


@pytest.mark.parametrize(
    ("how", "failed", "sent"),
    [
        ({}, ["1", "3"], {0, 2, 4}),
        ({"done": True}, ["1", "3"], {0, 1, 2, 3, 4}),
        ({"silent": True}, [], {0, 2, 4}),
    ],
)
def test_entries_of_a_send(aws: Aws, how: dict, failed: list[str], sent: set[int]) -> None:
    with faults.injected() as broken:
        broken.partly("sqs:SendMessageBatch", [1, 3], **how)
        answer = send(aws, 5)
    assert [entry["Id"] for entry in answer.get("Failed", [])] == failed
    assert [entry["Id"] for entry in answer["Successful"]] == ["0", "2", "4"]
    assert set(visible_messages(aws)) == sent


def test_a_whole_send_refused_entry_by_entry(aws: Aws) -> None:
    with faults.injected() as broken:
        broken.partly("sqs:SendMessageBatch", [0, 1], code="InternalError")
        answer = send(aws, 2)
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [
        ("0", "InternalError"),
        ("1", "InternalError"),
    ]
    assert visible_messages(aws) == []


def test_unprocessed_items(aws: Aws) -> None:
    requests = [{"PutRequest": {"Item": {"pk": {"S": f"job#{n}"}, "sk": {"S": "job"}}}} for n in range(4)]
    with faults.injected() as broken:
        broken.partly("dynamodb:BatchWriteItem", [0, 2])
        answer = aws.dynamodb.batch_write_item(RequestItems={aws.table: requests})
    assert answer["UnprocessedItems"] == {aws.table: [requests[0], requests[2]]}
    assert items(aws) == ["job#1", "job#3"]


def test_unprocessed_keys(aws: Aws) -> None:
    for number in range(3):
        put(aws, number)
    keys = [{"pk": {"S": f"job#{n}"}, "sk": {"S": "job"}} for n in range(3)]
    with faults.injected() as broken:
        broken.partly("dynamodb:BatchGetItem", [0, 1])
        answer = aws.dynamodb.batch_get_item(RequestItems={aws.table: {"Keys": keys, "ConsistentRead": True}})
    assert answer["UnprocessedKeys"] == {aws.table: {"Keys": keys[:2], "ConsistentRead": True}}
    assert answer["Responses"] == {aws.table: keys[2:]}


@pytest.mark.parametrize(("done", "seen"), [(False, [False, True, False]), (True, [True, True, True])])
def test_statements(aws: Aws, done: bool, seen: list[bool]) -> None:
    for number in range(3):
        put(aws, number)
    text = f'UPDATE "{aws.table}" SET "seen"=\'y\' WHERE "pk"=? AND "sk"=\'job\''
    statements = [{"Statement": text, "Parameters": [{"S": f"job#{n}"}]} for n in range(3)]
    with faults.injected() as broken:
        broken.partly("dynamodb:BatchExecuteStatement", [0, 2], code="ThrottlingError", done=done)
        answers = aws.dynamodb.batch_execute_statement(Statements=statements)["Responses"]
    assert [answer.get("Error", {}).get("Code") for answer in answers] == ["ThrottlingError", None, "ThrottlingError"]
    assert ["seen" in item for item in all_items(aws)] == seen
