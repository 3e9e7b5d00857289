"""The alarm topic and every alarm. They never need a metric of their own a shard: idle stays cheap."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from infra.function import METRICS_NAMESPACE, service_name
from infra.options import Options
from shared.model.job import Priority
from shared.store.keys import DUE_INDEX

MINUTE = Duration.minutes(1)
OLDEST_MESSAGE: dict[Priority, str] = {  # the alarm of each queue
    "normal": "OldestMessage",
    "high": "OldestHighMessage",
    "low": "OldestLowMessage",
}
FIVE_MINUTES = Duration.minutes(5)


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What the alarms and the dashboard look at."""

    table: dynamodb.Table
    jobs: Mapping[Priority, sqs.Queue]
    dead_letters: sqs.Queue
    submit: lambda_.Function
    tick: lambda_.Function
    execute: lambda_.Function
    audit: lambda_.Function
    api: apigateway.HttpApi


class Alarms(Construct):
    """Each alarm goes to one topic, when it rises and when it is over."""

    def __init__(self, scope: Construct, construct_id: str, *, options: Options, watched: Watched) -> None:
        super().__init__(scope, construct_id)
        self.topic = _topic(self, options)
        self.all: list[cloudwatch.Alarm] = []
        self._queue_alarms(watched, options)
        self._tick_alarms(watched, options)
        self._function_alarms(watched)
        self._store_alarms(watched)
        self._audit_alarms(watched, options)

    def _queue_alarms(self, watched: Watched, options: Options) -> None:
        self._alarm(
            "DeadLetters",
            watched.dead_letters.metric_approximate_number_of_messages_visible(period=MINUTE, statistic="Maximum"),
            "Runs are in the dead-letter queue: their last attempt failed, or the executor could not start",
        )
        for priority, queue in watched.jobs.items():
            self._alarm(
                OLDEST_MESSAGE[priority],
                queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
                f"Messages of {priority} priority wait too long for an executor, or a run is retried for very long",
                threshold=options.alarm_message_age_s,
                periods=3,
            )

    def _tick_alarms(self, watched: Watched, options: Options) -> None:
        self._alarm(
            "NoTick",
            watched.tick.metric_invocations(period=MINUTE, statistic="Sum"),
            "No shard was ticked for 3 minutes: jobs beyond the horizon are not claimed",
            below=True,
            periods=3,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )
        if len(options.ticks) > 1:
            # Ten minutes hold ten calls of each schedule. A stopped one leaves ten out, the edges at most a few.
            self._alarm(
                "ShardNotTicked",
                watched.tick.metric_invocations(period=Duration.minutes(10), statistic="Sum"),
                "At least one schedule of ticks has stopped: its shards' jobs beyond the horizon are not claimed",
                below=True,
                threshold=10 * len(options.ticks) - 5,
                periods=2,  # the first one after a deployment is not whole
            )
        self._alarm(
            "TickErrors",
            watched.tick.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            "The tick of a shard failed; the next one goes on, within the horizon nothing is late",
        )

    def _function_alarms(self, watched: Watched) -> None:
        self._alarm(
            "ExecutorErrors",
            watched.execute.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            "The executor itself failed (a handler that fails does not raise this)",
        )
        self._alarm(
            "ExecutorThrottles",
            watched.execute.metric_throttles(period=FIVE_MINUTES, statistic="Sum"),
            "Lambda refused the executor more concurrency",
        )
        self._alarm(
            "ApiErrors",
            watched.api.metric_server_error(period=FIVE_MINUTES, statistic="Sum"),
            "The API answered 5xx",
        )

    def _store_alarms(self, watched: Watched) -> None:
        for name, metric in throttles(watched.table).items():
            self._alarm(
                name, metric, "DynamoDB throttles: the table or index takes more than one partition gives; see shards"
            )

    def _audit_alarms(self, watched: Watched, options: Options) -> None:
        self._alarm(
            "AuditFindings",
            audit_findings(options),
            "The audit found (and repaired) something that must not be: overdue, lost or left behind",
        )
        self._alarm(
            "AuditErrors",
            watched.audit.metric_errors(period=Duration.hours(1), statistic="Sum"),
            "The audit failed, so nobody looks for what was lost",
        )

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        meaning: str,
        *,
        threshold: int = 1,
        below: bool = False,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        operator = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_description=f"Duetime: {meaning}",
            threshold=threshold,
            comparison_operator=operator.LESS_THAN_THRESHOLD if below else operator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=periods,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(SnsAction(self.topic))
        alarm.add_ok_action(SnsAction(self.topic))
        self.all.append(alarm)


def audit_findings(options: Options) -> cloudwatch.Metric:
    """The audit's own metric: findings of an hour."""
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE,
        metric_name="AuditFindings",
        dimensions_map={"service": service_name(options, "audit")},
        period=Duration.hours(1),
        statistic="Sum",
    )


def throttles(table: dynamodb.Table) -> dict[str, cloudwatch.Metric]:
    """Throttled reads and writes of table and index, in five minutes. An alarm each costs what one on the sum would."""

    def events(kind: str, **index: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=f"{kind}ThrottleEvents",
            dimensions_map={"TableName": table.table_name, **index},
            period=FIVE_MINUTES,
            statistic="Sum",
        )

    return {
        "TableReadThrottles": events("Read"),
        "TableWriteThrottles": events("Write"),
        "IndexReadThrottles": events("Read", GlobalSecondaryIndexName=DUE_INDEX),
        "IndexWriteThrottles": events("Write", GlobalSecondaryIndexName=DUE_INDEX),
    }


def _topic(scope: Construct, options: Options) -> sns.Topic:
    topic = sns.Topic(
        scope, "Topic", display_name=f"{options.stack_name} alarms", enforce_ssl=True, master_key=_key(scope, options)
    )
    stack = Stack.of(scope)
    # A topic policy of one's own takes the place of the default one, so CloudWatch must be let in by name.
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AlarmsPublish",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={
                "ArnLike": {"aws:SourceArn": f"arn:{stack.partition}:cloudwatch:{stack.region}:{stack.account}:alarm:*"}
            },
        )
    )
    if options.alarm_email:
        topic.add_subscription(subscriptions.EmailSubscription(options.alarm_email))
    return topic


def _key(scope: Construct, options: Options) -> kms.Key | None:
    if options.alarm_key == "none":
        return None
    keep = options.removal_policy == "retain"
    key = kms.Key(
        scope,
        "Key",
        description="Duetime: encrypts the alarm topic",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
    )
    # CloudWatch cannot use the key that AWS manages for SNS; this is what a key of one's own is for.
    key.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AlarmsEncrypt",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            resources=["*"],  # in a key's policy: this key
        )
    )
    return key
