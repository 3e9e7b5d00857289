"""The four functions: what they run on, how long, and with which settings."""

import pytest

from shared import settings
from shared.model.job import PRIORITIES, Priority
from tests.infra.conftest import Synthesise
from tests.infra.template import Resource, Template, written

Settings = settings.SubmitSettings | settings.TickSettings | settings.ExecuteSettings | settings.AuditSettings
SETTINGS: dict[str, type[Settings]] = {
    "submit": settings.SubmitSettings,
    "tick": settings.TickSettings,
    "execute": settings.ExecuteSettings,
    "audit": settings.AuditSettings,
}
NAMES = pytest.mark.parametrize("name", SETTINGS)
QUEUE_URLS: dict[Priority, str] = {
    "high": "DUETIME_HIGH_QUEUE_URL",
    "normal": "DUETIME_QUEUE_URL",
    "low": "DUETIME_LOW_QUEUE_URL",
}


def environment(template: Template, name: str) -> dict[str, str]:
    _, function = template.function(name)
    return {key: written(value) for key, value in function["Environment"]["Variables"].items()}


@NAMES
def test_its_environment_is_its_settings_and_powertools(template: Template, name: str) -> None:
    variables = environment(template, name)
    powertools = {v for v in variables if v.startswith("POWERTOOLS_")}
    assert set(variables) - powertools == set(SETTINGS[name].variables().values())
    assert powertools == {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}


@NAMES
def test_its_settings_read_what_the_stack_wrote(synthesise: Synthesise, name: str) -> None:
    limits = {"shards": 200, "ticked_shards": 256, "horizon_s": 840, "retention_days": 3650, "audit_segments": 64}
    concurrencies = {f"executor{kind}_concurrency": 1000 for kind in ("", "_high", "_low")}
    largest = synthesise(**limits, **concurrencies, executor_timeout_s=900, api_rate=10000)
    smallest = synthesise(horizon_s=0, retention_days=1, audit_segments=1, executor_timeout_s=30)
    for template in (largest, smallest):
        read = SETTINGS[name].from_env(environment(template, name))
        assert read.retention_days in (1, 3650)


def test_the_queues_and_the_table_are_not_mixed_up(template: Template) -> None:
    (table,) = template.all("AWS::DynamoDB::Table")
    for name in SETTINGS:
        variables = environment(template, name)
        assert variables["DUETIME_TABLE"] == f"${{{table}}}"
        for priority, variable in QUEUE_URLS.items():
            assert variables[variable] == f"${{{template.job_queue(priority)[0]}}}"
    dead = environment(template, "execute")["DUETIME_DEAD_LETTER_QUEUE_URL"]
    assert dead == f"${{{template.dead_letters()[0]}}}"


def test_new_jobs_go_to_the_written_shards_and_the_audit_sees_all_ticked_ones(synthesise: Synthesise) -> None:
    template = synthesise(shards=2, ticked_shards=4)
    shards = {name: environment(template, name).get("DUETIME_SHARDS") for name in SETTINGS}
    assert shards == {"submit": "2", "tick": "2", "execute": None, "audit": "4"}


def test_a_job_may_not_ask_for_more_time_than_the_executor_has(synthesise: Synthesise) -> None:
    assert environment(synthesise(executor_timeout_s=900), "submit")["DUETIME_MAX_TIMEOUT_S"] == "885"


@NAMES
def test_it_runs_on_arm_and_python_3_13_unless_chosen(template: Template, synthesise: Synthesise, name: str) -> None:
    _, function = template.function(name)
    assert (function["Architectures"], function["Runtime"]) == (["arm64"], "python3.13")
    _, other = synthesise(architecture="x86_64", python_version="3.14").function(name)
    assert (other["Architectures"], other["Runtime"]) == (["x86_64"], "python3.14")


def test_timeouts_keep_to_the_protocol(template: Template) -> None:
    timeouts = {name: template.function(name)[1]["Timeout"] for name in SETTINGS}
    assert timeouts == {"submit": 29, "tick": 60, "execute": 120, "audit": 300}
    assert timeouts["tick"] < 90, "a journal page of 90 s is taken for one that no living tick owns"
    assert timeouts["submit"] < 30, "API Gateway gives up at 30 s"


@NAMES
def test_memory_and_reserve_are_choices(template: Template, synthesise: Synthesise, name: str) -> None:
    assert "ReservedConcurrentExecutions" not in template.function(name)[1]
    reserves = {f"{n}_reserved_concurrency": 177 for n in ("submit", "tick", "executor")}
    memory = {f"{n}_memory_mb": 2048 for n in ("submit", "tick", "executor", "audit")}
    _, function = synthesise(**reserves, **memory).function(name)
    assert function["MemorySize"] == 2048
    assert function.get("ReservedConcurrentExecutions") == (None if name == "audit" else 177)


@NAMES
def test_it_logs_json_to_a_group_of_its_own_that_ends(template: Template, name: str) -> None:
    _, function = template.function(name)
    logging = function["LoggingConfig"]
    assert logging["LogFormat"] == "JSON"
    # Above INFO, Lambda would drop the metrics: they are log lines without a level.
    assert logging["ApplicationLogLevel"] == "INFO"
    group = logging["LogGroup"]["Ref"]
    assert template.all("AWS::Logs::LogGroup")[group]["RetentionInDays"] == 30
    assert [n for n in SETTINGS if template.function(n)[1]["LoggingConfig"]["LogGroup"]["Ref"] == group] == [name]


def test_no_log_group_is_kept_for_ever(synthesise: Synthesise) -> None:
    groups = synthesise(log_retention_days=7).all("AWS::Logs::LogGroup").values()
    assert [g["RetentionInDays"] for g in groups] == [7] * 5


@NAMES
def test_traces_are_active_or_off_as_a_whole(template: Template, synthesise: Synthesise, name: str) -> None:
    assert template.function(name)[1]["TracingConfig"] == {"Mode": "Active"}
    without = synthesise(tracing="off")
    assert "TracingConfig" not in without.function(name)[1]
    assert not [a for s in without.may(name) for a in s.actions if a.startswith("xray:")]


def test_services_of_two_stacks_do_not_share_metrics(synthesise: Synthesise) -> None:
    template = synthesise(stack_name="Second")
    assert environment(template, "audit")["POWERTOOLS_SERVICE_NAME"] == "Second-audit"
    (dimension,) = template.alarm("AuditFindings")["Dimensions"]
    assert dimension == {"Name": "service", "Value": "Second-audit"}


def test_nothing_has_a_name_that_a_second_stack_would_want_too(template: Template) -> None:
    named = {
        (logical_id, key)
        for logical_id, resource in template.resources.items()
        for key in resource.get("Properties", {})
        if key in ("TableName", "QueueName", "FunctionName", "RoleName", "TopicName", "LogGroupName", "AlarmName")
        and resource["Type"] not in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission")
        and resource["Type"] != "AWS::Lambda::EventInvokeConfig"
    }
    assert named == set()


def mappings(template: Template) -> dict[str, Resource]:
    """Logical id of a queue → the mapping that feeds the executor from it."""
    found = template.all("AWS::Lambda::EventSourceMapping").values()
    return {mapping["EventSourceArn"]["Fn::GetAtt"][0]: mapping for mapping in found}


def test_each_job_queue_feeds_the_executor_by_tens_and_takes_back_what_failed(template: Template) -> None:
    assert set(mappings(template)) == {template.job_queue(priority)[0] for priority in PRIORITIES}
    for mapping in mappings(template).values():
        assert mapping["FunctionName"] == {"Ref": template.function("execute")[0]}
        assert mapping["BatchSize"] == 10
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert "MaximumBatchingWindowInSeconds" not in mapping, "a window would make every run late"


def test_each_priority_has_a_concurrency_that_no_other_can_take(template: Template, synthesise: Synthesise) -> None:
    def concurrencies(template: Template) -> list[int]:
        found = mappings(template)
        return [found[template.job_queue(p)[0]]["ScalingConfig"]["MaximumConcurrency"] for p in PRIORITIES]

    assert concurrencies(template) == [50, 50, 10]
    chosen = {"executor_high_concurrency": 7, "executor_concurrency": 8, "executor_low_concurrency": 2}
    assert concurrencies(synthesise(**chosen)) == [7, 8, 2]
