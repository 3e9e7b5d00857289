"""The two stand-ins for AWS and the clock that both follow: what every other test relies on."""

import threading
from pathlib import Path

import pytest

from tests.support.aws import Aws, acknowledge, all_items, dead_letters, messages_waiting, sqs_event, visible_messages
from tests.support.clocks import EndlessWaitError, ManualClock
from tests.support.emulator import Emulator

pytestmark = pytest.mark.backends("moto", "emulator")


def test_a_delayed_message_comes_at_its_second(aws: Aws, clock: ManualClock) -> None:
    aws.sqs.send_message(QueueUrl=aws.queue_url, MessageBody='{"n": 1}', DelaySeconds=40)
    clock.advance(39.9)
    assert visible_messages(aws) == []
    assert messages_waiting(aws) == {"visible": 0, "delayed": 1, "flight": 0}
    clock.advance(0.2)
    assert visible_messages(aws) == [{"n": 1}]


def test_a_group_puts_a_standard_queue_in_no_order(aws: Aws, clock: ManualClock) -> None:
    """As on AWS, where it is the key of a fair queue: one in flight holds up no other of its group, a delay is kept."""
    aws.sqs.send_message_batch(
        QueueUrl=aws.queue_url,
        Entries=[
            {"Id": str(n), "MessageBody": str(n), "MessageGroupId": "tenant-a", "DelaySeconds": 10 * n}
            for n in range(3)
        ],
    )
    for number in range(3):
        (record,) = sqs_event(aws)["Records"]
        assert (record["body"], record["attributes"]["MessageGroupId"]) == (str(number), "tenant-a")
        clock.advance(10)
    assert messages_waiting(aws)["flight"] == 3


def test_visibility_follows_the_clock(aws: Aws, clock: ManualClock) -> None:
    aws.sqs.send_message(QueueUrl=aws.queue_url, MessageBody='{"n": 1}')
    clock.advance(1)
    event = sqs_event(aws, visibility_timeout_s=30)
    assert len(event["Records"]) == 1
    clock.advance(20)
    handle = event["Records"][0]["receiptHandle"]
    aws.sqs.change_message_visibility(QueueUrl=aws.queue_url, ReceiptHandle=handle, VisibilityTimeout=100)
    clock.advance(99)
    assert sqs_event(aws)["Records"] == []
    clock.advance(2)
    again = sqs_event(aws)
    assert [record["attributes"]["ApproximateReceiveCount"] for record in again["Records"]] == ["2"]
    acknowledge(aws, again, {"batchItemFailures": []})
    assert messages_waiting(aws) == {"visible": 0, "delayed": 0, "flight": 0}


def test_only_what_the_answer_names_is_kept(aws: Aws, clock: ManualClock) -> None:
    for number in range(3):
        aws.sqs.send_message(QueueUrl=aws.queue_url, MessageBody=str(number))
    clock.advance(1)
    event = sqs_event(aws)
    kept = next(record for record in event["Records"] if record["body"] == "1")
    acknowledge(aws, event, {"batchItemFailures": [{"itemIdentifier": kept["messageId"]}]})
    clock.advance(721)
    assert visible_messages(aws) == [1]


def test_a_clock_that_stands_still_forbids_long_polls(aws: Aws, clock: ManualClock) -> None:
    with pytest.raises(EndlessWaitError):
        aws.sqs.receive_message(QueueUrl=aws.queue_url, WaitTimeSeconds=1)


def test_each_test_starts_empty(aws: Aws) -> None:
    assert all_items(aws) == []
    assert visible_messages(aws) == dead_letters(aws) == []


def test_one_of_many_racing_writes_wins(aws: Aws) -> None:
    aws.dynamodb.put_item(TableName=aws.table, Item={"pk": {"S": "shard#0"}, "sk": {"S": "lease"}, "epoch": {"N": "0"}})
    won: list[int] = []
    barrier = threading.Barrier(8)
    statement = f'UPDATE "{aws.table}" SET "epoch"=? WHERE "pk"=? AND "sk"=? AND "epoch"=?'

    def race(number: int) -> None:
        values = [{"N": "1"}, {"S": "shard#0"}, {"S": "lease"}, {"N": "0"}]
        barrier.wait()
        answer = aws.dynamodb.batch_execute_statement(Statements=[{"Statement": statement, "Parameters": values}])
        if "Error" not in answer["Responses"][0]:
            won.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_the_emulator_listens_on_loopback_only(emulator_server: Emulator) -> None:
    held = {link.readlink().name for link in Path(f"/proc/{emulator_server.pid}/fd").iterdir() if link.is_symlink()}
    listening = [
        fields[1]
        for table in ("tcp", "tcp6")
        for fields in map(str.split, Path(f"/proc/{emulator_server.pid}/net/{table}").read_text().splitlines()[1:])
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in held
    ]
    assert [address.partition(":")[0] for address in listening] == ["0100007F"]  # one socket, on 127.0.0.1
