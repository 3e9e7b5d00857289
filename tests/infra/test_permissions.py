"""One least-privilege role a function: just the rows of infra/permissions.py, on just those resources."""

import pytest

from infra.permissions import PERMISSIONS, FunctionName
from shared.model.job import PRIORITIES
from shared.store.keys import DUE_INDEX, LIST_INDEX
from tests.infra.template import Template, written

NAMES = pytest.mark.parametrize("name", PERMISSIONS)


def named_resources(template: Template) -> dict[str, str]:
    """ARN as the template writes it → the name of the resource in infra/permissions.py."""
    (table,) = template.all("AWS::DynamoDB::Table")
    return {
        f"${{{table}.Arn}}": "table",
        f"${{{table}.Arn}}/index/{DUE_INDEX}": "index",
        f"${{{table}.Arn}}/index/{LIST_INDEX}": "lists",
        f"${{{template.dead_letters()[0]}.Arn}}": "dead_letters",
        **{f"${{{template.job_queue(priority)[0]}.Arn}}": "jobs" for priority in PRIORITIES},
    }


@NAMES
def test_what_is_granted_on_one_job_queue_is_granted_on_all(template: Template, name: FunctionName) -> None:
    arns = [f"${{{template.job_queue(priority)[0]}.Arn}}" for priority in PRIORITIES]
    high, normal, low = ({a for s in template.may(name) if arn in s.resources for a in s.actions} for arn in arns)
    assert high == normal == low != set()


def granted(template: Template, name: str) -> set[tuple[str, str]]:
    """(action, resource) pairs of a function's role; a resource that is not ours stays as it is written."""
    ours = named_resources(template)
    return {(a, ours.get(r, r)) for s in template.may(name) for a in s.actions for r in s.resources}


@NAMES
def test_a_role_grants_the_rows_of_the_table_and_its_own_logs_and_traces(
    template: Template, name: FunctionName
) -> None:
    _, function = template.function(name)
    logs = f"${{{function['LoggingConfig']['LogGroup']['Ref']}.Arn}}"
    expected: set[tuple[str, str]] = {(grant.action, grant.resource) for grant in PERMISSIONS[name]}
    expected |= {("logs:CreateLogStream", logs), ("logs:PutLogEvents", logs)}
    expected |= {("xray:PutTelemetryRecords", "*"), ("xray:PutTraceSegments", "*")}
    assert granted(template, name) == expected


@NAMES
def test_no_action_has_a_star_and_no_resource_but_x_rays(template: Template, name: FunctionName) -> None:
    for statement in template.may(name):
        assert not [a for a in statement.actions if "*" in a]
        if any("*" in r for r in statement.resources):
            assert statement.actions == {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}


@NAMES
def test_every_row_stands_once_and_has_its_reason(name: FunctionName) -> None:
    rows = PERMISSIONS[name]
    assert len({(row.action, row.resource) for row in rows}) == len(rows)
    assert all(len(row.why) > 5 for row in rows)


@pytest.mark.parametrize("name", ["submit", "tick", "audit"])
def test_only_the_executor_consumes_messages(template: Template, name: FunctionName) -> None:
    consuming = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:PurgeQueue"}
    assert not {action for action, resource in granted(template, name) if resource == "jobs"} & consuming
    assert ("sqs:ReceiveMessage", "jobs") in granted(template, "execute")


def test_the_executor_never_reads_an_index(template: Template) -> None:
    rights = granted(template, "execute")
    assert not [r for r in rights if r[1] in ("index", "lists")]
    assert ("sqs:SendMessage", "dead_letters") in rights


def test_dead_letters_are_written_by_the_executor_and_taken_off_by_the_audit(template: Template) -> None:
    assert not [r for n in ("submit", "tick") for r in granted(template, n) if r[1] == "dead_letters"]
    assert {a for a, r in granted(template, "execute") if r == "dead_letters"} == {"sqs:SendMessage"}
    assert ("sqs:SendMessage", "dead_letters") not in granted(template, "audit")


def test_only_the_audit_and_lists_scan_and_nobody_deletes_a_table(template: Template) -> None:
    assert [n for n in PERMISSIONS if ("dynamodb:Scan", "table") in granted(template, n)] == ["submit", "audit"]
    all_actions = {a for n in PERMISSIONS for a, _ in granted(template, n)}
    assert not {a for a in all_actions if a.startswith("dynamodb:") and "Table" in a}


def test_four_functions_have_four_roles(template: Template) -> None:
    roles = [template.role_of(name)[0] for name in PERMISSIONS]
    assert len(set(roles)) == 4
    for name in PERMISSIONS:
        (trust,) = template.role_of(name)[1]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


@pytest.mark.parametrize("function", ["tick", "audit"])
def test_a_schedule_may_invoke_its_one_function_and_nothing_else(template: Template, function: str) -> None:
    logical_id, _ = template.function(function)
    roles = [
        role
        for role in template.all("AWS::IAM::Role").values()
        if role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}
        and f"${{{logical_id}.Arn}}" in written(role["Policies"][0]["PolicyDocument"]["Statement"][0]["Resource"])
    ]
    assert len(roles) == 1
    (statement,) = roles[0]["Policies"][0]["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Effect"]) == ("lambda:InvokeFunction", "Allow")
    (trust,) = roles[0]["AssumeRolePolicyDocument"]["Statement"]
    assert set(trust["Condition"]["StringEquals"]) == {"aws:SourceAccount", "aws:SourceArn"}
