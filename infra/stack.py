"""The whole of Duetime as one stack: it wires the constructs and their settings, and never holds a rule of its own."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import Alarms, Watched
from infra.api import Api
from infra.audit import Audit
from infra.dashboard import Dashboard
from infra.executor import Executor
from infra.options import Options
from infra.permissions import Arns
from infra.queues import Queues
from infra.table import JobTable
from infra.ticker import Ticker
from shared.settings import AuditSettings, ExecuteSettings, SubmitSettings, TickSettings


class DuetimeStack(Stack):
    """Every physical name comes from CloudFormation, so that several stacks can stand side by side in an account."""

    def __init__(self, scope: Construct, construct_id: str, *, options: Options, code: lambda_.Code) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=options.stack_name,
            description="Duetime: a distributed job scheduler",
            termination_protection=options.removal_policy == "retain",
        )
        table = JobTable(self, "Store", options=options)
        queues = Queues(self, "Queues", options=options)
        resources: Arns = {
            "table": [table.arn],
            "index": [table.index_arn],
            "lists": [table.lists_arn],
            "jobs": [queue.queue_arn for queue in queues.jobs.values()],
            "dead_letters": [queues.dead_letters.queue_arn],
        }
        values = _setting_values(options, table, queues)

        def common(settings: Any, **other: int) -> dict[str, Any]:
            own = {field: str(value) for field, value in other.items()}
            return {
                "options": options,
                "code": code,
                "environment": _environment(settings.variables(), {**values, **own}),
                "resources": resources,
            }

        api = Api(self, "Api", **common(SubmitSettings))
        ticker = Ticker(self, "Ticker", **common(TickSettings))
        executor = Executor(self, "Executor", **common(ExecuteSettings), jobs=queues.jobs)
        audit = Audit(self, "Audit", **common(AuditSettings, shards=options.ticked_shards))
        watched = Watched(
            table=table.table,
            jobs=queues.jobs,
            dead_letters=queues.dead_letters,
            submit=api.function,
            tick=ticker.function,
            execute=executor.function,
            audit=audit.function,
            api=api.api,
        )
        alarms = Alarms(self, "Alarms", options=options, watched=watched)
        Dashboard(self, "Dashboard", options=options, watched=watched, alarms=alarms)
        self._outputs(api, watched, alarms)

    def _outputs(self, api: Api, watched: Watched, alarms: Alarms) -> None:
        outputs = {
            "ApiUrl": api.url,
            "ApiId": watched.api.api_id,
            "TableName": watched.table.table_name,
            "QueueUrl": watched.jobs["normal"].queue_url,
            "HighQueueUrl": watched.jobs["high"].queue_url,
            "LowQueueUrl": watched.jobs["low"].queue_url,
            "DeadLetterQueueUrl": watched.dead_letters.queue_url,
            "SubmitFunctionName": watched.submit.function_name,
            "TickFunctionName": watched.tick.function_name,
            "ExecuteFunctionName": watched.execute.function_name,
            "AuditFunctionName": watched.audit.function_name,
            "TopicArn": alarms.topic.topic_arn,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)


def _setting_values(options: Options, table: JobTable, queues: Queues) -> dict[str, str]:
    """A value for every field of every settings class in shared/settings.py."""
    return {
        "table": table.table.table_name,
        "queue_url": queues.jobs["normal"].queue_url,
        "high_queue_url": queues.jobs["high"].queue_url,
        "low_queue_url": queues.jobs["low"].queue_url,
        "dead_letter_queue_url": queues.dead_letters.queue_url,
        "shards": str(options.shards),
        "ticked_shards": str(options.ticked_shards),
        "horizon_s": str(options.horizon_s),
        "retention_days": str(options.retention_days),
        "max_timeout_s": str(options.max_timeout_s),
        "segments": str(options.audit_segments),
    }


def _environment(variables: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Environment variable → value, for the fields of one settings class; one without a value fails the synthesis."""
    return {variable: values[field] for field, variable in variables.items()}
