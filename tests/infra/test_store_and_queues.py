"""The table and the queues, as AWS will make them."""

from datetime import timedelta

import pytest

from shared.model.job import PRIORITIES, Priority
from shared.queue import MAX_HIDE_S
from shared.rules.waits import WORN_AGE, WORN_RECEIVES
from shared.store import keys
from tests.infra.conftest import Synthesise
from tests.infra.template import Template


def test_one_table_on_demand_with_the_keys_of_the_store(template: Template) -> None:
    table = template.only("AWS::DynamoDB::Table")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["KeySchema"] == [
        {"AttributeName": keys.PK, "KeyType": "HASH"},
        {"AttributeName": keys.SK, "KeyType": "RANGE"},
    ]
    assert {d["AttributeName"]: d["AttributeType"] for d in table["AttributeDefinitions"]} == dict.fromkeys(
        (keys.PK, keys.SK, keys.DUE_KEY, keys.DUE_AT, keys.LIST_KEY, keys.LIST_AT), "S"
    )


def test_the_index_of_due_times_projects_what_a_claim_needs_and_no_more(template: Template) -> None:
    index, _ = template.only("AWS::DynamoDB::Table")["GlobalSecondaryIndexes"]
    assert index["IndexName"] == keys.DUE_INDEX
    assert index["KeySchema"] == [
        {"AttributeName": keys.DUE_KEY, "KeyType": "HASH"},
        {"AttributeName": keys.DUE_AT, "KeyType": "RANGE"},
    ]
    assert index["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(keys.DUE_PROJECTION)}


def test_the_index_of_lists_has_keys_alone(template: Template) -> None:
    """So that nothing but a change of group writes it again: not a claim, not the end of a run."""
    _, index = template.only("AWS::DynamoDB::Table")["GlobalSecondaryIndexes"]
    assert index["IndexName"] == keys.LIST_INDEX
    assert index["KeySchema"] == [
        {"AttributeName": keys.LIST_KEY, "KeyType": "HASH"},
        {"AttributeName": keys.LIST_AT, "KeyType": "RANGE"},
    ]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_items_expire_and_the_table_can_be_restored(template: Template) -> None:
    table = template.only("AWS::DynamoDB::Table")
    assert table["TimeToLiveSpecification"] == {"AttributeName": keys.TTL_ATTRIBUTE, "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_by_default_the_table_outlives_the_stack(template: Template) -> None:
    (table,) = (r for r in template.resources.values() if r["Type"] == "AWS::DynamoDB::Table")
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert table["Properties"]["DeletionProtectionEnabled"] is True


def test_a_stack_to_be_thrown_away_leaves_nothing(synthesise: Synthesise) -> None:
    resources = synthesise(removal_policy="destroy").resources
    assert "Retain" not in {r.get("DeletionPolicy") for r in resources.values()}
    (table,) = (r for r in resources.values() if r["Type"] == "AWS::DynamoDB::Table")
    assert table["Properties"]["DeletionProtectionEnabled"] is False


def test_three_queues_of_jobs_alike_and_one_of_dead_letters(template: Template) -> None:
    high, normal, low = (template.job_queue(priority)[1] for priority in PRIORITIES)
    assert high == normal == low
    assert len(template.all("AWS::SQS::Queue")) == 4
    assert "RedrivePolicy" not in template.dead_letters()[1]


@pytest.mark.parametrize("priority", PRIORITIES)
def test_what_no_executor_can_take_ends_in_the_one_dead_letter_queue(template: Template, priority: Priority) -> None:
    redrive = template.job_queue(priority)[1]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0] == template.dead_letters()[0]
    assert redrive["maxReceiveCount"] == 1000


def test_no_message_that_waits_is_left_to_the_end_of_its_queue(template: Template) -> None:
    """It is sent anew at half of what the queue allows; in between it may be hidden for 11 hours at most."""
    queue = template.job_queue("normal")[1]
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 2 * WORN_RECEIVES
    assert timedelta(seconds=queue["MessageRetentionPeriod"]) > WORN_AGE + timedelta(seconds=MAX_HIDE_S)


def test_all_queues_keep_14_days_encrypted(template: Template) -> None:
    for queue in template.all("AWS::SQS::Queue").values():
        assert queue["MessageRetentionPeriod"] == 14 * 86_400
        assert queue["SqsManagedSseEnabled"] is True


@pytest.mark.parametrize("timeout_s", [30, 120, 900])
def test_c50_a_message_is_hidden_for_six_times_the_longest_run(synthesise: Synthesise, timeout_s: int) -> None:
    template = synthesise(executor_timeout_s=timeout_s)
    _, function = template.function("execute")
    assert function["Timeout"] == timeout_s
    for priority in PRIORITIES:
        visibility = template.job_queue(priority)[1]["VisibilityTimeout"]
        assert visibility == 6 * timeout_s
        assert visibility <= 43_200


def test_nobody_reaches_a_queue_or_the_topic_without_tls(template: Template) -> None:
    policies = [*template.all("AWS::SQS::QueuePolicy").values(), template.only("AWS::SNS::TopicPolicy")]
    assert len(policies) == 5
    for policy in policies:
        denied = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
        assert [s["Condition"] for s in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]
        assert denied[0]["Principal"] in ("*", {"AWS": "*"})
