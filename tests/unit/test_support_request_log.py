"""The request log: what was asked, what IAM must allow for it, and what it cost by AWS's own count."""

from typing import Any

import pytest

from shared.store import keys
from tests.support import request_log
from tests.support.aws import Aws
from tests.support.request_log import Permission, Request

TABLE, QUEUE = "duetime", "https://sqs.us-east-1.amazonaws.com/123456789012/jobs"


@pytest.mark.parametrize(
    ("operation", "params", "expected"),
    [
        ("SendMessageBatch", {"QueueUrl": QUEUE}, {("sqs:SendMessage", "jobs")}),
        ("ChangeMessageVisibilityBatch", {"QueueUrl": QUEUE}, {("sqs:ChangeMessageVisibility", "jobs")}),
        ("DeleteMessageBatch", {"QueueUrl": QUEUE}, {("sqs:DeleteMessage", "jobs")}),
        ("ReceiveMessage", {"QueueUrl": QUEUE}, {("sqs:ReceiveMessage", "jobs")}),
        ("GetItem", {"TableName": TABLE}, {("dynamodb:GetItem", TABLE)}),
        ("Query", {"TableName": TABLE, "IndexName": "due"}, {("dynamodb:Query", "duetime/index/due")}),
        ("BatchWriteItem", {"RequestItems": {TABLE: []}}, {("dynamodb:BatchWriteItem", TABLE)}),
        (
            "BatchExecuteStatement",
            {"Statements": [{"Statement": 'UPDATE "duetime" …'}, {"Statement": 'delete from "duetime" …'}]},
            {("dynamodb:PartiQLUpdate", TABLE), ("dynamodb:PartiQLDelete", TABLE)},
        ),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "duetime"'}, {("dynamodb:PartiQLSelect", TABLE)}),
        (
            "TransactWriteItems",
            {"TransactItems": [{"ConditionCheck": {"TableName": TABLE}}, {"Put": {"TableName": TABLE}}]},
            {("dynamodb:ConditionCheckItem", TABLE), ("dynamodb:PutItem", TABLE)},
        ),
    ],
)
def test_permissions(operation: str, params: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    service = "sqs" if "QueueUrl" in params else "dynamodb"
    assert Request(service, operation, params).permissions == {Permission(*one) for one in expected}


def write(aws: Aws) -> None:
    key = {"pk": {"S": "job#a"}, "sk": {"S": "job"}}
    due = {keys.DUE_KEY: {"S": "2026-11-30T12:00#0"}, keys.DUE_AT: {"S": "2026-11-30T12:00:05"}}
    aws.dynamodb.put_item(TableName=aws.table, Item={**key, **due})
    text = f'UPDATE "{aws.table}" SET "due_at"=? WHERE "pk"=? AND "sk"=?'
    values = [{"S": "2026-11-30T12:00:06"}, *key.values()]
    aws.dynamodb.batch_execute_statement(Statements=[{"Statement": text, "Parameters": values}])
    aws.dynamodb.get_item(TableName=aws.table, Key=key, ConsistentRead=True)
    aws.sqs.send_message(QueueUrl=aws.queue_url, MessageBody="{}")


def test_every_request_is_kept_as_it_was_asked(aws: Aws) -> None:
    with request_log.logging() as log:
        write(aws)
    names = ["dynamodb:PutItem", "dynamodb:BatchExecuteStatement", "dynamodb:GetItem", "sqs:SendMessage"]
    assert [request.name for request in log.requests] == names
    assert "ReturnConsumedCapacity" not in log.requests[0].params
    assert log.named("dynamodb:GetItem")[0].answer is not None
    assert Permission("dynamodb:PartiQLUpdate", aws.table) in log.permissions
    write(aws)
    assert len(log.requests) == 4


def test_an_error_answer_is_kept_too(aws: Aws) -> None:
    with request_log.logging() as log, pytest.raises(aws.dynamodb.exceptions.ConditionalCheckFailedException):
        aws.dynamodb.put_item(
            TableName=aws.table,
            Item={"pk": {"S": "job#a"}, "sk": {"S": "job"}},
            ConditionExpression="attribute_exists(#pk)",
            ExpressionAttributeNames={"#pk": "pk"},
        )
    assert log.requests[0].error == "ConditionalCheckFailedException"


@pytest.mark.backends("emulator")
def test_units_are_those_of_aws_index_writes_included(aws: Aws) -> None:
    with request_log.measuring(aws) as log:
        write(aws)
    put, update, get, _ = log.requests
    assert put.units == 2  # the item, and its new row in the index
    assert update.units == 3  # the item; in the index the old row goes and a new one comes
    assert (log.write_units, log.read_units) == (5, get.units) == (5, 1)


def test_moto_is_no_measure(aws: Aws) -> None:
    with pytest.raises(ValueError, match="measured on the emulator"), request_log.measuring(aws):
        pass
