"""Each alarm: what it looks at, when it rises, and that somebody hears it. (No emulator evaluates alarms.)"""

import json

import pytest

from shared.store.keys import DUE_INDEX
from tests.infra.conftest import Synthesise
from tests.infra.template import Resource, Template, written

GREATER, LESS = "GreaterThanOrEqualToThreshold", "LessThanThreshold"
# name: namespace, metric, statistic, period s, periods, comparison, threshold, missing data
EXPECTED = {
    "DeadLetters": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 60, 1, GREATER, 1, "notBreaching"),
    "OldestMessage": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", 60, 3, GREATER, 1800, "notBreaching"),
    "OldestHighMessage": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", 60, 3, GREATER, 1800, "notBreaching"),
    "OldestLowMessage": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", 60, 3, GREATER, 1800, "notBreaching"),
    "NoTick": ("AWS/Lambda", "Invocations", "Sum", 60, 3, LESS, 1, "breaching"),
    "TickErrors": ("AWS/Lambda", "Errors", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "ExecutorErrors": ("AWS/Lambda", "Errors", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "ExecutorThrottles": ("AWS/Lambda", "Throttles", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "ApiErrors": ("AWS/ApiGateway", "5xx", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "TableReadThrottles": ("AWS/DynamoDB", "ReadThrottleEvents", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "TableWriteThrottles": ("AWS/DynamoDB", "WriteThrottleEvents", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "IndexReadThrottles": ("AWS/DynamoDB", "ReadThrottleEvents", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "IndexWriteThrottles": ("AWS/DynamoDB", "WriteThrottleEvents", "Sum", 300, 1, GREATER, 1, "notBreaching"),
    "AuditFindings": ("Duetime", "AuditFindings", "Sum", 3600, 1, GREATER, 1, "notBreaching"),
    "AuditErrors": ("AWS/Lambda", "Errors", "Sum", 3600, 1, GREATER, 1, "notBreaching"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_it_rises_when_it_should(template: Template, name: str) -> None:
    alarm = template.alarm(name)
    assert (
        alarm["Namespace"],
        alarm["MetricName"],
        alarm["Statistic"],
        alarm["Period"],
        alarm["EvaluationPeriods"],
        alarm["ComparisonOperator"],
        alarm["Threshold"],
        alarm["TreatMissingData"],
    ) == EXPECTED[name]
    assert "DatapointsToAlarm" not in alarm


def test_there_is_no_other_alarm(template: Template) -> None:
    assert len(template.all("AWS::CloudWatch::Alarm")) == len(EXPECTED)


def dimensions(alarm: Resource) -> dict[str, str]:
    return {d["Name"]: written(d["Value"]) for d in alarm["Dimensions"]}


@pytest.mark.parametrize(
    ("alarm", "function"),
    [
        ("NoTick", "tick"),
        ("TickErrors", "tick"),
        ("ExecutorErrors", "execute"),
        ("ExecutorThrottles", "execute"),
        ("AuditErrors", "audit"),
    ],
)
def test_it_looks_at_its_function(template: Template, alarm: str, function: str) -> None:
    logical_id, _ = template.function(function)
    assert dimensions(template.alarm(alarm)) == {"FunctionName": f"${{{logical_id}}}"}


def test_the_queue_alarms_look_at_their_queues(template: Template) -> None:
    def queue(alarm: str) -> str:
        ((key, value),) = dimensions(template.alarm(alarm)).items()
        assert key == "QueueName"
        return value.removeprefix("${").removesuffix(".QueueName}")

    assert queue("DeadLetters") == template.dead_letters()[0]
    assert queue("OldestHighMessage") == template.job_queue("high")[0]
    assert queue("OldestMessage") == template.job_queue("normal")[0]
    assert queue("OldestLowMessage") == template.job_queue("low")[0]


def test_throttles_are_seen_on_the_table_and_on_the_index(template: Template) -> None:
    (table,) = template.all("AWS::DynamoDB::Table")
    for kind in ("Read", "Write"):
        assert dimensions(template.alarm(f"Table{kind}Throttles")) == {"TableName": f"${{{table}}}"}
        assert dimensions(template.alarm(f"Index{kind}Throttles")) == {
            "TableName": f"${{{table}}}",
            "GlobalSecondaryIndexName": DUE_INDEX,
        }


@pytest.mark.parametrize("choices", [{"shards": 16}, {"shards": 4, "shards_per_tick": 1}])
def test_a_single_schedule_that_stops_is_seen_among_many(synthesise: Synthesise, choices: dict[str, int]) -> None:
    alarm = synthesise(**choices).alarm("ShardNotTicked")
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["ComparisonOperator"]) == (600, 2, LESS)
    healthy, one_stopped = 10 * 4, 10 * 3
    assert one_stopped < alarm["Threshold"] < healthy


def test_no_tick_at_all_sees_the_only_schedule_stop(synthesise: Synthesise) -> None:
    resources = synthesise(shards=4).resources
    assert not [name for name in resources if "ShardNotTicked" in name]
    assert [name for name in resources if "NoTick" in name]


def test_each_alarm_tells_the_topic_when_it_rises_and_when_it_is_over(template: Template) -> None:
    (topic,) = template.all("AWS::SNS::Topic")
    for name, alarm in template.all("AWS::CloudWatch::Alarm").items():
        assert alarm["AlarmActions"] == [{"Ref": topic}], name
        assert alarm["OKActions"] == [{"Ref": topic}], name
        assert alarm.get("ActionsEnabled", True) is True


def test_cloudwatch_may_publish_though_the_topic_has_a_policy_and_a_key(template: Template) -> None:
    statements = template.only("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    (allowed,) = (s for s in statements if s["Effect"] == "Allow")
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Action"] == "sns:Publish"
    assert written(allowed["Condition"]["ArnLike"]["aws:SourceArn"]).endswith(":alarm:*")
    (key,) = template.all("AWS::KMS::Key")
    assert template.only("AWS::SNS::Topic")["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    (usable,) = (
        s
        for s in template.only("AWS::KMS::Key")["KeyPolicy"]["Statement"]
        if s["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    )
    assert set(usable["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey*"}
    assert template.only("AWS::KMS::Key")["EnableKeyRotation"] is True


def test_the_key_can_be_left_out(synthesise: Synthesise) -> None:
    template = synthesise(alarm_key="none")
    assert not template.all("AWS::KMS::Key")
    assert "KmsMasterKeyId" not in template.only("AWS::SNS::Topic")


def test_an_address_is_subscribed_when_given(template: Template, synthesise: Synthesise) -> None:
    assert not template.all("AWS::SNS::Subscription")
    subscription = synthesise(alarm_email="ops@example.com").only("AWS::SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")


def test_the_dashboard_shows_every_stage(template: Template) -> None:
    body = template.only("AWS::CloudWatch::Dashboard")["DashboardBody"]
    text = "".join(part if isinstance(part, str) else "x" for part in body["Fn::Join"][1])
    widgets = json.loads(text)["widgets"]
    titles = {widget["properties"]["title"] for widget in widgets}
    assert {
        "Alarms",
        "API requests",
        "Ticks",
        "Queue of high jobs",
        "Queue of normal jobs",
        "Queue of low jobs",
        "Executor",
        "Dead letters",
        "Lateness of starts, ms",
        "Table units",
    } <= titles
