"""A minute schedule for every few ticked shards, and one hourly one for the audit."""

import json

import pytest

from tests.infra.conftest import Synthesise
from tests.infra.template import Resource, Template


def schedules_of(template: Template, function: str) -> list[Resource]:
    logical_id, _ = template.function(function)
    return [
        schedule
        for schedule in template.all("AWS::Scheduler::Schedule").values()
        if schedule["Target"]["Arn"] == {"Fn::GetAtt": [logical_id, "Arn"]}
    ]


def events_of(template: Template) -> list[dict[str, list[int]]]:
    """What the tick function is called with each minute."""
    events = [json.loads(schedule["Target"]["Input"]) for schedule in schedules_of(template, "tick")]
    return sorted(events, key=lambda event: event["shards"])


@pytest.mark.parametrize(
    ("choices", "shards"),
    [
        ({}, [[0]]),
        ({"shards": 4}, [[0, 1, 2, 3]]),
        ({"shards": 2, "ticked_shards": 6}, [[0, 1, 2, 3], [4, 5]]),
        ({"shards": 3, "shards_per_tick": 1}, [[0], [1], [2]]),
    ],
)
def test_each_ticked_shard_is_of_one_schedule(
    synthesise: Synthesise, choices: dict[str, int], shards: list[list[int]]
) -> None:
    template = synthesise(**choices)
    assert events_of(template) == [{"shards": some} for some in shards]
    expressions = {schedule["ScheduleExpression"] for schedule in schedules_of(template, "tick")}
    assert expressions == {"rate(1 minute)"}


def test_growing_the_shards_takes_none_from_its_schedule(synthesise: Synthesise) -> None:
    """A schedule is changed in place, so that no shard is without one while the stack grows."""
    before, after = (
        {
            shard: logical_id
            for logical_id, schedule in synthesise(shards=shards).all("AWS::Scheduler::Schedule").items()
            for shard in json.loads(schedule["Target"]["Input"]).get("shards", [])
        }
        for shards in (6, 16)
    )
    assert len(after) == 16
    assert before.items() <= after.items()


def test_the_audit_comes_hourly(template: Template) -> None:
    (schedule,) = schedules_of(template, "audit")
    assert schedule["ScheduleExpression"] == "rate(1 hour)"


def test_no_schedule_may_come_late_or_pile_up(template: Template) -> None:
    schedules = template.all("AWS::Scheduler::Schedule").values()
    assert len(schedules) == 2
    for schedule in schedules:
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert schedule["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 2}
        assert schedule.get("State", "ENABLED") == "ENABLED"


def test_lambda_does_not_repeat_a_failed_tick_beside_the_next_one(template: Template) -> None:
    configs = template.all("AWS::Lambda::EventInvokeConfig").values()
    assert {c["FunctionName"]["Ref"] for c in configs} == {template.function(n)[0] for n in ("tick", "audit")}
    assert {(c["MaximumRetryAttempts"], c["MaximumEventAgeInSeconds"], c["Qualifier"]) for c in configs} == {
        (0, 60, "$LATEST")
    }
