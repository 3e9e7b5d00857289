"""The minute tick: its function and a schedule for every few ticked shards. It never receives from the queue."""

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
    """Each schedule calls the function every minute with its shards: `{"shards": [0, 1, 2, 3]}`."""

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
        for shards in options.ticks:
            schedules.add(
                f"Shard{shards[0]}",
                expression="rate(1 minute)",
                event={"shards": shards},
                description=f"Duetime: the minute tick of shards {', '.join(map(str, shards))}",
            )
