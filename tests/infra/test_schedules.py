"""One minute schedule a ticked shard, and one hourly one for the audit."""

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


@pytest.mark.parametrize(("choices", "ticked"), [({}, 1), ({"shards": 4}, 4), ({"shards": 2, "ticked_shards": 4}, 4)])
def test_each_ticked_shard_has_its_schedule(synthesise: Synthesise, choices: dict[str, int], ticked: int) -> None:
    schedules = schedules_of(synthesise(**choices), "tick")
    events = [json.loads(schedule["Target"]["Input"]) for schedule in schedules]
    assert sorted(events, key=lambda e: e["shard"]) == [{"shard": n} for n in range(ticked)]
    assert {schedule["ScheduleExpression"] for schedule in schedules} == {"rate(1 minute)"}


def test_growing_the_shards_leaves_the_old_schedules_as_they_are(synthesise: Synthesise) -> None:
    few = synthesise().all("AWS::Scheduler::Schedule")
    many = synthesise(shards=4).all("AWS::Scheduler::Schedule")
    assert few.items() <= many.items()


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
