"""The executor: its function and the mappings that feed it, one a job queue. It never reads the index."""

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.function import DuetimeFunction
from infra.options import Options
from infra.permissions import Arns
from infra.queues import NAMES
from shared.model.job import Priority

BATCH_SIZE = 10


class Executor(Construct):
    """Each priority has its share of batches of ten at once; a batch gives back just the messages that failed.

    Lambda polls each mapping for itself: however full one queue is, the others' messages are taken at once.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: Options,
        code: lambda_.Code,
        environment: Mapping[str, str],
        resources: Arns,
        jobs: Mapping[Priority, sqs.Queue],
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = DuetimeFunction(
            self,
            "Execute",
            name="execute",
            code=code,
            options=options,
            environment=environment,
            resources=resources,
            memory_mb=options.executor_memory_mb,
            timeout_s=options.executor_timeout_s,
            reserved_concurrency=options.executor_reserved_concurrency,
        ).function
        for priority, queue in jobs.items():
            lambda_.EventSourceMapping(
                self,
                f"From{NAMES[priority]}",
                target=self.function,
                event_source_arn=queue.queue_arn,
                batch_size=BATCH_SIZE,
                report_batch_item_failures=True,
                max_concurrency=options.executor_concurrencies[priority],
            )
