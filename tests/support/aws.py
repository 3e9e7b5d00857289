"""The table and the queues that a test works on, on whichever stand-in for AWS. It never starts a stand-in."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.model.job import PRIORITIES, Priority
from shared.store import keys
from tests.support import calls

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_sqs.client import SQSClient

REGION = "us-east-1"
VISIBILITY_TIMEOUT_S = 720  # as deployed: 6 × the executor's 120 s
MAX_RECEIVE_COUNT = 1000


@dataclass(frozen=True)
class Aws:
    """What a test may touch. The clients are plain boto3 clients, as the product's are."""

    backend: str  # `moto` or `emulator`
    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    table: str
    queue_urls: dict[Priority, str]
    dead_letter_queue_url: str

    @property
    def queue_url(self) -> str:
        """The queue of jobs of normal priority."""
        return self.queue_urls["normal"]


def create(backend: str, dynamodb: "DynamoDBClient", sqs: "SQSClient") -> Aws:
    """A new table and new queues under names of their own."""
    suffix = uuid.uuid4().hex[:12]
    with calls.unseen():
        table = _create_table(dynamodb, f"duetime-{suffix}")
        dead_letters = sqs.create_queue(QueueName=f"dead-letters-{suffix}")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=dead_letters, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVE_COUNT})
        attributes: Any = {"VisibilityTimeout": str(VISIBILITY_TIMEOUT_S), "RedrivePolicy": redrive}
        queues = {
            priority: sqs.create_queue(QueueName=f"{priority}-jobs-{suffix}", Attributes=attributes)["QueueUrl"]
            for priority in PRIORITIES
        }
    return Aws(backend, dynamodb, sqs, table, queues, dead_letters)


def delete(aws: Aws) -> None:
    with calls.unseen():
        aws.dynamodb.delete_table(TableName=aws.table)
        for url in (*aws.queue_urls.values(), aws.dead_letter_queue_url):
            aws.sqs.delete_queue(QueueUrl=url)


def _create_table(dynamodb: "DynamoDBClient", name: str) -> str:
    strings = (keys.PK, keys.SK, keys.DUE_KEY, keys.DUE_AT, keys.LIST_KEY, keys.LIST_AT)
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": "S"} for attribute in strings],
        KeySchema=[{"AttributeName": keys.PK, "KeyType": "HASH"}, {"AttributeName": keys.SK, "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": keys.DUE_INDEX,
                "KeySchema": [
                    {"AttributeName": keys.DUE_KEY, "KeyType": "HASH"},
                    {"AttributeName": keys.DUE_AT, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(keys.DUE_PROJECTION)},
            },
            {
                "IndexName": keys.LIST_INDEX,
                "KeySchema": [
                    {"AttributeName": keys.LIST_KEY, "KeyType": "HASH"},
                    {"AttributeName": keys.LIST_AT, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
    )
    dynamodb.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": keys.TTL_ATTRIBUTE}
    )
    return name


def all_items(aws: Aws) -> list[dict[str, Any]]:
    """Every item of the table in DynamoDB's own form, by pk and sk."""
    with calls.unseen():
        pages = aws.dynamodb.get_paginator("scan").paginate(TableName=aws.table, ConsistentRead=True)
        items: list[dict[str, Any]] = [item for page in pages for item in page["Items"]]
    return sorted(items, key=lambda item: (item[keys.PK]["S"], item[keys.SK]["S"]))


def visible_messages(aws: Aws) -> list[dict[str, Any]]:
    """The bodies of the messages that an executor would get now, read as JSON, taken out of their queues."""
    return [body for url in aws.queue_urls.values() for body in _drain(aws, url)]


def dead_letters(aws: Aws) -> list[dict[str, Any]]:
    """The bodies in the dead-letter queue, read as JSON, taken out of it."""
    return list(_drain(aws, aws.dead_letter_queue_url))


def messages_waiting(aws: Aws, priority: Priority | None = None) -> dict[str, int]:
    """How many messages are `visible`, `delayed` and in `flight` (received, neither deleted nor visible again).

    In the queue of `priority`, or in all of them.
    """
    names = {"visible": "", "delayed": "Delayed", "flight": "NotVisible"}
    urls = aws.queue_urls.values() if priority is None else [aws.queue_urls[priority]]
    with calls.unseen():
        answers: Any = [aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]) for url in urls]
    return {
        k: sum(int(one["Attributes"][f"ApproximateNumberOfMessages{v}"]) for one in answers) for k, v in names.items()
    }


def sqs_event(
    aws: Aws, limit: int = 10, *, visibility_timeout_s: int = VISIBILITY_TIMEOUT_S, priority: Priority = "normal"
) -> dict[str, Any]:
    """Receive up to `limit` (≤ 10) visible messages, as the event that Lambda hands the executor."""
    with calls.unseen():
        answer = aws.sqs.receive_message(
            QueueUrl=aws.queue_urls[priority],
            MaxNumberOfMessages=limit,
            VisibilityTimeout=visibility_timeout_s,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
    name = aws.queue_urls[priority].rpartition("/")[2]
    return {"Records": [_record(name, message) for message in answer.get("Messages", [])]}


def acknowledge(aws: Aws, event: dict[str, Any], answer: dict[str, Any] | None) -> None:
    """Delete what the executor's `answer` does not name as failed, as the event source mapping does."""
    failures = (answer or {}).get("batchItemFailures", [])
    failed = {failure["itemIdentifier"] for failure in failures}
    known = {record["messageId"] for record in event["Records"]}
    if failed - known:  # Lambda then takes the whole batch as failed
        return
    with calls.unseen():
        for record in event["Records"]:
            if record["messageId"] not in failed:
                name = record["eventSourceARN"].rpartition(":")[2]
                (url,) = (one for one in aws.queue_urls.values() if one.endswith(f"/{name}"))
                aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=record["receiptHandle"])


def _record(queue_name: str, message: Any) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:123456789012:{queue_name}",
        "awsRegion": REGION,
    }


def _drain(aws: Aws, queue_url: str) -> Iterator[dict[str, Any]]:
    with calls.unseen():
        while True:
            answer = aws.sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=43_200)
            messages = answer.get("Messages", [])
            if not messages:
                return
            for message in messages:
                aws.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
                yield json.loads(message["Body"])
