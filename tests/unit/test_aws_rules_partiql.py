"""Each limit on PartiQL statements: what AWS takes passes, what it refuses does not (C59)."""

from typing import Any

import pytest

from tests.support.aws_rules import problems

CLAIM = 'UPDATE "t" SET "fence"=? SET "due_at"=? REMOVE "due_key" WHERE "pk"=? AND "sk"=? AND "status"=? AND "fence"<=?'


def claim(number: int = 0, text: str = CLAIM, **changed: Any) -> dict[str, Any]:
    values = [{"N": "1"}, {"S": "12:00"}, {"S": f"job#{number}"}, {"S": "job"}, {"S": "scheduled"}, {"N": "1"}]
    return {"Statement": text, "Parameters": values, **changed}


def update(rest: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    statement = {"Statement": f'UPDATE "t" {rest}'}
    return {**statement, "Parameters": list(parameters)} if parameters else statement


def found(*statements: dict[str, Any]) -> list[str]:
    return problems("dynamodb", "BatchExecuteStatement", {"Statements": list(statements)})


@pytest.mark.parametrize(("count", "passes"), [(1, True), (25, True), (26, False), (0, False)])
def test_statements_of_a_batch(count: int, passes: bool) -> None:
    assert (found(*[claim(number) for number in range(count)]) == []) is passes


WHERE = "WHERE \"pk\"='job#a' AND \"sk\"='job'"


@pytest.mark.parametrize(
    "statement",
    [
        update(f"SET \"a\"='x' {WHERE}"),
        update(f'SET "a"=?, "b"="b"+1 REMOVE "c" {WHERE} AND "d" IS MISSING', {"N": "5"}),
        update(f'SET "map"."member"[0]=? {WHERE}', {"L": []}),
        {"Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': 'b', 'status': 'x'}", "Parameters": [{"S": "a"}]},
        {"Statement": 'SELECT * FROM "t" WHERE "pk"=? AND "sk"=?', "Parameters": [{"S": "a"}, {"S": "b"}]},
        {"Statement": 'DELETE FROM "t" WHERE "pk"=? AND "sk"=?', "Parameters": [{"S": "a"}, {"S": "b"}]},
    ],
)
def test_statements_that_pass(statement: dict[str, Any]) -> None:
    assert found(statement) == []


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (claim(text=CLAIM.replace('"status"', "status")), "the bare word 'status'"),
        (claim(text=CLAIM.replace('"t"', "t")), "the bare word 't'"),
        (claim(text=CLAIM.replace('"due_key"', "due_key")), "the bare word 'due_key'"),
        (claim(Parameters=[]), "left out or have at least one"),
        (claim(Parameters=[{"N": "1"}]), "6 question marks and 1 parameters"),
        (update(f"SET \"a\"='{'x' * 8192}' {WHERE}"), "1 to 8192 characters"),
        ({"Statement": ""}, "1 to 8192 characters"),
        (update(f'SET "a"=? {WHERE}', {"N": "1" * 39}), "38 significant digits"),
        (update(f'SET "a"=? {WHERE}', {"SS": []}), "empty set"),
        (update(f'SET "a"=? {WHERE}', {}), "one value with one type"),
        (update(f'SET "due_at"=? {WHERE}', {"N": "1"}), "due_at is a key"),
        (update(f'SET "due_key"=? {WHERE}', {"S": ""}), "due_key is a key"),
        (update(f"SET \"due_key\"='' {WHERE}"), "due_key is a key"),
        (update(f'SET "ttl"=? {WHERE}', {"S": "1"}), "would never expire"),
        (update(f"SET \"pk\"='x' {WHERE}"), "part of the key"),
        (update(f"SET \"a\"='x' SET \"a\"='y' {WHERE}"), "written twice"),
        (update(f'SET "a"=\'x\' REMOVE "a" {WHERE}'), "written twice"),
        (update("SET \"a\"='x' WHERE \"pk\"='a'"), "a key is exactly"),
        (update("SET \"a\"='x' WHERE \"pk\"='a' AND \"sk\">'b'"), "a key is exactly"),
        (update("SET \"a\"='x' WHERE \"pk\"='' AND \"sk\"='b'"), "pk is a key"),
        (update("SET \"a\"='x'"), "expected WHERE"),
        (update(WHERE), "neither SET nor REMOVE"),
        (update(f'SET "a"=#b {WHERE}'), "cannot be read"),
        ({"Statement": 'INSERT INTO "t" VALUE ?', "Parameters": [{"M": {"pk": {"S": "a"}}}]}, "expected {"),
        ({"Statement": "INSERT INTO \"t\" VALUE {'pk': ?}", "Parameters": [{"S": "a"}]}, "no key attribute sk"),
        ({"Statement": "INSERT INTO \"t\" VALUE {'pk': 'a', 'sk': ''}"}, "sk is a key"),
        ({"Statement": "INSERT INTO \"t\" VALUE {'pk': 'a', 'sk': 'b'} RETURNING ALL"}, "goes on with"),
    ],
)
def test_statements_that_fail(statement: dict[str, Any], problem: str) -> None:
    assert any(f"statement 0: {problem}" in one or problem in one for one in found(statement))


def test_two_statements_on_one_item() -> None:
    assert "comes twice" in found(claim(1), claim(1))[0]
    assert found(claim(1), claim(2)) == []


def test_reads_and_writes_do_not_mix() -> None:
    select = {"Statement": 'SELECT * FROM "t" WHERE "pk"=? AND "sk"=?', "Parameters": [{"S": "a"}, {"S": "b"}]}
    assert "reads or writes" in found(claim(), select)[0]
