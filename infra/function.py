"""One Duetime function: code, log group, environment and least-privilege role. It never gets a grant from elsewhere.

The role's policy is written out from infra/permissions.py and handed over sealed, so no construct can add to it.
"""

from collections.abc import Mapping

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.nag import acknowledge
from infra.options import Options
from infra.permissions import PERMISSIONS, Arns, FunctionName, Resource

_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    3653: logs.RetentionDays.TEN_YEARS,
}
METRICS_NAMESPACE = "Duetime"


def service_name(options: Options, name: FunctionName) -> str:
    """The Powertools service of a function, and so the `service` dimension of its metrics: one a stack and function."""
    return f"{options.stack_name}-{name}"


def log_group(scope: Construct, construct_id: str, options: Options) -> logs.LogGroup:
    """A log group that ends with the stack's own rules."""
    keep = options.removal_policy == "retain"
    return logs.LogGroup(
        scope,
        construct_id,
        retention=_RETENTION[options.log_retention_days],
        removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
    )


class DuetimeFunction(Construct):
    """`functions/<name>/handler.py` with memory in MB and timeout in seconds."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: FunctionName,
        code: lambda_.Code,
        options: Options,
        environment: Mapping[str, str],
        resources: Arns,
        memory_mb: int,
        timeout_s: int,
        reserved_concurrency: int | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        logs_of_it = log_group(self, "Logs", options)
        self.role = _role(self, name, resources, logs_of_it, options)
        self.function = lambda_.Function(
            self,
            "Function",
            code=code,
            handler=f"functions.{name}.handler.handler",
            runtime=lambda_.Runtime(f"python{options.python_version}", lambda_.RuntimeFamily.PYTHON),
            architecture=lambda_.Architecture.ARM_64
            if options.architecture == "arm64"
            else lambda_.Architecture.X86_64,
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_s),
            reserved_concurrent_executions=reserved_concurrency,
            environment={**environment, **_powertools(name, options)},
            role=self.role.without_policy_updates(),
            log_group=logs_of_it,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel(options.log_level),
            tracing=lambda_.Tracing.ACTIVE if options.tracing == "active" else lambda_.Tracing.DISABLED,
        )
        if options.python_version != "3.14":
            acknowledge(
                self.function,
                "AwsSolutions-L1",
                "The Python version is a choice of the deployment; the default is the newest that is fully tested.",
            )


def _powertools(name: FunctionName, options: Options) -> dict[str, str]:
    return {
        "POWERTOOLS_SERVICE_NAME": service_name(options, name),
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
        "POWERTOOLS_LOG_LEVEL": options.log_level,
    }


def _role(
    scope: Construct,
    name: FunctionName,
    resources: Arns,
    logs_of_it: logs.LogGroup,
    options: Options,
) -> iam.Role:
    actions: dict[Resource, list[str]] = {}
    for grant in PERMISSIONS[name]:
        actions.setdefault(grant.resource, []).append(grant.action)
    statements = [
        iam.PolicyStatement(actions=sorted(granted), resources=list(resources[resource]))
        for resource, granted in actions.items()
    ]
    statements.append(
        iam.PolicyStatement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[logs_of_it.log_group_arn])
    )
    if options.tracing == "active":
        statements.append(
            iam.PolicyStatement(actions=["xray:PutTelemetryRecords", "xray:PutTraceSegments"], resources=["*"])
        )
    role = iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        description=f"What the {name} function of Duetime may do",
        inline_policies={"Duetime": iam.PolicyDocument(statements=statements)},
    )
    acknowledge(
        role,
        "AwsSolutions-IAM5[Resource::*]",
        "X-Ray's two write actions know no resources; every other statement names its own.",
    )
    return role
