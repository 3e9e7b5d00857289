"""The hook itself: on every client of the process, past every `except` of the product, and known to the test's end."""

import threading

import boto3
import botocore.session
import pytest

from shared.store import keys
from tests.support import aws_rules
from tests.support.aws import Aws, visible_messages
from tests.support.aws_rules import RULES, AwsRuleError


def too_late(aws: Aws, client: object = None) -> None:
    (client or aws.sqs).send_message(QueueUrl=aws.queue_url, MessageBody="{}", DelaySeconds=901)


def test_nothing_is_sent_and_the_rule_is_named_with_its_page(aws: Aws) -> None:
    with pytest.raises(AwsRuleError, match=r"DelaySeconds must be .* 0 to 900, not 901 \(https://docs.aws.amazon.com/"):
        too_late(aws)
    assert len(RULES.forget()) == 1
    assert visible_messages(aws) == []


def test_the_product_cannot_swallow_it(aws: Aws) -> None:
    def product() -> None:
        try:
            too_late(aws)
        except Exception:  # noqa: BLE001  the point
            pytest.fail("an AwsRuleError was caught as an Exception")

    with aws_rules.breaking("DelaySeconds"):
        product()


def test_what_is_swallowed_all_the_same_is_kept_for_the_end_of_the_test(aws: Aws) -> None:
    def product() -> None:
        try:
            too_late(aws)
        except BaseException:  # noqa: BLE001  the point
            return

    thread = threading.Thread(target=product)
    thread.start()
    thread.join()
    assert "sqs:SendMessage breaks AWS's rules" in RULES.forget()[0]


@pytest.mark.parametrize("made_by", ["boto3.client", "boto3.Session", "boto3.resource", "botocore"])
def test_every_client_is_judged(aws: Aws, made_by: str) -> None:
    item = {keys.PK: {"S": ""}, keys.SK: {"S": "x"}}
    with aws_rules.breaking("pk is a key: it must be a string that is not empty"):
        if made_by == "boto3.client":
            boto3.client("dynamodb").put_item(TableName=aws.table, Item=item)
        elif made_by == "boto3.Session":
            boto3.Session().client("dynamodb").put_item(TableName=aws.table, Item=item)
        elif made_by == "boto3.resource":
            boto3.resource("dynamodb").Table(aws.table).put_item(Item={keys.PK: "", keys.SK: "x"})
        else:
            botocore.session.get_session().create_client("dynamodb").put_item(TableName=aws.table, Item=item)


def test_paginators_and_batches_of_the_resource_are_judged(aws: Aws) -> None:
    with aws_rules.breaking("ConsistentRead"):
        pages = aws.dynamodb.get_paginator("scan").paginate(
            TableName=aws.table, IndexName=keys.DUE_INDEX, ConsistentRead=True
        )
        list(pages)


def test_a_request_within_the_rules_passes(aws: Aws) -> None:
    aws.sqs.send_message(QueueUrl=aws.queue_url, MessageBody="{}", DelaySeconds=0)
    assert visible_messages(aws) == [{}]
