"""What calls a function by the clock: EventBridge schedules. Their role never may do more than invoke that function."""

import json
from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct


class Schedules(Construct):
    """The schedules of one function. An invocation older than a minute is dropped: the next one comes."""

    def __init__(self, scope: Construct, construct_id: str, *, function: lambda_.Function) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self._function = function
        self._group = scheduler.CfnScheduleGroup(self, "Group")
        self._role = iam.Role(
            self,
            "Role",
            description="What the scheduler may invoke",
            # Only schedules of this account and group may use the role (no confused deputy).
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {
                        "aws:SourceAccount": stack.account,
                        "aws:SourceArn": self._group.attr_arn,
                    }
                },
            ),
            inline_policies={
                "Invoke": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
                    ]
                )
            },
        )

    def add(self, construct_id: str, *, expression: str, event: Mapping[str, object], description: str) -> None:
        """Invoke the function at each `expression` with `event`."""
        scheduler.CfnSchedule(
            self,
            construct_id,
            description=description,
            group_name=self._group.ref,
            schedule_expression=expression,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self._function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps(event),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=2
                ),
            ),
        )


def invoke_once(scope: Construct, function: lambda_.Function) -> None:
    """Turn Lambda's own retries of `function` off: a failed tick is made good by the next one, not by an old event."""
    lambda_.CfnEventInvokeConfig(
        scope,
        "InvokeOnce",
        function_name=function.function_name,
        qualifier="$LATEST",
        maximum_retry_attempts=0,
        maximum_event_age_in_seconds=60,
    )
