"""The hook that runs PartiQL UPDATEs on moto: each statement is judged alone and answered in its place."""

import pytest

from tests.support import aws_rules
from tests.support.aws import Aws, all_items

CLAIM = (
    'UPDATE "{table}" SET "fence"=? SET "due_at"=? REMOVE "due_key" '
    'WHERE "pk"=? AND "sk"=? AND "status"=? AND "revision"=? AND "fence"<=?'
)


def put(aws: Aws, pk: str, **attributes: dict[str, str]) -> None:
    item = {"pk": {"S": pk}, "sk": {"S": "job"}, "due_key": {"S": "b#0"}, "due_at": {"S": "t0"}, **attributes}
    aws.dynamodb.put_item(TableName=aws.table, Item=item)


def job(aws: Aws, pk: str, fence: int = 0, status: str = "scheduled") -> None:
    put(aws, pk, status={"S": status}, revision={"N": "1"}, fence={"N": str(fence)})


def claim(aws: Aws, pk: str, fence: int) -> dict:
    values = [
        {"N": str(fence)},
        {"S": "t1"},
        {"S": pk},
        {"S": "job"},
        {"S": "scheduled"},
        {"N": "1"},
        {"N": str(fence)},
    ]
    return {"Statement": CLAIM.format(table=aws.table), "Parameters": values}


def run(aws: Aws, *statements: dict) -> list[dict]:
    return aws.dynamodb.batch_execute_statement(Statements=list(statements))["Responses"]


def test_each_statement_is_judged_alone_and_answered_in_its_place(aws: Aws) -> None:
    job(aws, "job#a")
    job(aws, "job#b", fence=9)
    job(aws, "job#c", status="cancelled")
    answers = run(aws, claim(aws, "job#a", 5), claim(aws, "job#b", 5), claim(aws, "job#c", 5), claim(aws, "job#d", 5))
    assert answers[0] == {"TableName": aws.table}
    assert [answer.get("Error", {}).get("Code") for answer in answers] == [None, *["ConditionalCheckFailed"] * 3]
    a, b, c = all_items(aws)  # and no ghost of job#d
    assert "due_key" not in a
    assert (a["fence"], a["due_at"]) == ({"N": "5"}, {"S": "t1"})
    assert b["due_at"] == c["due_at"] == {"S": "t0"}


def test_capacity_is_answered_if_asked_for(aws: Aws) -> None:
    job(aws, "job#a")
    statements = [claim(aws, "job#a", 5), claim(aws, "job#x", 5)]
    answer = aws.dynamodb.batch_execute_statement(Statements=statements, ReturnConsumedCapacity="TOTAL")
    assert [capacity["TableName"] for capacity in answer["ConsumedCapacity"]] == [aws.table]
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] >= 2
    assert "ConsumedCapacity" not in aws.dynamodb.batch_execute_statement(Statements=statements)


@pytest.mark.parametrize(
    ("condition", "parameters", "holds"),
    [
        ('"fence" = 3', [], True),
        ('"fence" < ?', [{"N": "4"}], True),
        ('"fence" < ?', [{"N": "3"}], False),
        ('"fence" > ?', [{"N": "2"}], True),
        ('"fence" >= ?', [{"N": "4"}], False),
        ('"fence" <> ?', [{"N": "3"}], False),
        ("\"status\" = 'scheduled'", [], True),
        ("\"status\" = 'it''s'", [], False),
        ('"ttl" IS MISSING', [], True),
        ('"ttl" IS NOT MISSING', [], False),
        ('attribute_exists("fence")', [], True),
        ('attribute_not_exists("fence")', [], False),
    ],
)
def test_conditions(aws: Aws, condition: str, parameters: list, holds: bool) -> None:
    job(aws, "job#a", fence=3)
    statement = f'UPDATE "{aws.table}" SET "seen"=\'y\' WHERE "pk"=\'job#a\' AND "sk"=\'job\' AND {condition}'
    [answer] = run(aws, {"Statement": statement, **({"Parameters": parameters} if parameters else {})})
    assert ("Error" not in answer) is holds
    assert ("seen" in all_items(aws)[0]) is holds


def test_a_sum_reads_the_item_as_it_was(aws: Aws) -> None:
    job(aws, "job#a", fence=3)
    statement = f'UPDATE "{aws.table}" SET "fence"="fence"+?, "seen"="fence" WHERE "pk"=? AND "sk"=?'
    run(aws, {"Statement": statement, "Parameters": [{"N": "2"}, {"S": "job#a"}, {"S": "job"}]})
    assert all_items(aws)[0]["fence"] == {"N": "5"}


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE "{table}" SET "a"=? WHERE "pk"=?',  # no sort key
        'UPDATE "{table}" SET "a"=? WHERE "pk"=? AND "sk"=? AND "b"=?',  # a parameter short
        'UPDATE "{table}" WHERE "pk"=? AND "sk"=?',
    ],
)
def test_a_bad_statement_fails_alone(aws: Aws, statement: str) -> None:
    job(aws, "job#a")
    bad = {"Statement": statement.format(table=aws.table), "Parameters": [{"S": "x"}, {"S": "job#a"}, {"S": "job"}]}
    with aws_rules.off():
        answers = run(aws, bad, claim(aws, "job#a", 1))
    assert answers[0]["Error"]["Code"] == "ValidationError"
    assert "Error" not in answers[1]


def test_the_old_item_is_answered_if_asked_for(aws: Aws) -> None:
    job(aws, "job#a", fence=9)
    [answer] = run(aws, claim(aws, "job#a", 5) | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
    assert answer["Error"]["Item"]["fence"] == {"N": "9"}
