"""The hourly audit: its function and schedule. It never receives from the queues of jobs."""

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import DuetimeFunction
from infra.options import Options
from infra.permissions import Arns
from infra.schedules import Schedules, invoke_once

AUDIT_TIMEOUT_S = 300


class Audit(Construct):
    """Scans the whole table once an hour for what must not be there."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: Options,
        code: lambda_.Code,
        environment: Mapping[str, str],
        resources: Arns,
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = DuetimeFunction(
            self,
            "Audit",
            name="audit",
            code=code,
            options=options,
            environment=environment,
            resources=resources,
            memory_mb=options.audit_memory_mb,
            timeout_s=AUDIT_TIMEOUT_S,
        ).function
        invoke_once(self, self.function)
        Schedules(self, "Schedules", function=self.function).add(
            "Hourly", expression="rate(1 hour)", event={}, description="Duetime: the hourly audit"
        )
