"""The minute tick: its function and one schedule a ticked shard. It never receives from the queue."""

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import DuetimeFunction
from infra.options import Options
from infra.permissions import Arns
from infra.schedules import Schedules, invoke_once

# Under 90 s: journal recovery takes a page of that age for one that no living tick owns.
TICK_TIMEOUT_S = 60


class Ticker(Construct):
    """Each ticked shard's schedule calls the function every minute with `{"shard": n}`."""

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
            "Tick",
            name="tick",
            code=code,
            options=options,
            environment=environment,
            resources=resources,
            memory_mb=options.tick_memory_mb,
            timeout_s=TICK_TIMEOUT_S,
            reserved_concurrency=options.tick_reserved_concurrency,
        ).function
        invoke_once(self, self.function)
        schedules = Schedules(self, "Schedules", function=self.function)
        for shard in range(options.ticked_shards):
            schedules.add(
                f"Shard{shard}",
                expression="rate(1 minute)",
                event={"shard": shard},
                description=f"Duetime: the minute tick of shard {shard}",
            )
