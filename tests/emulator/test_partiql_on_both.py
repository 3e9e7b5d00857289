"""The same PartiQL statements on moto, by the translating hook, and on the emulator: same answers, same items left."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import aws_rules, emulator_backend, moto_backend
from tests.support.aws import Aws, all_items
from tests.support.emulator import Emulator

KEY = "\"pk\"='job#a' AND \"sk\"='job'"
BEFORE = {
    "pk": {"S": "job#a"},
    "sk": {"S": "job"},
    "status": {"S": "scheduled"},
    "fence": {"N": "3"},
    "due_key": {"S": "2026-11-30T12:00#0"},
    "due_at": {"S": "2026-11-30T12:00:05"},
    "retry": {"M": {"base_s": {"N": "10"}}},
    "attempts": {"L": [{"S": "one"}, {"M": {"worker": {"S": "me"}}}]},
}


@pytest.fixture
def both(emulator_server: Emulator) -> Iterator[tuple[Aws, Aws]]:
    with moto_backend.running() as on_moto, emulator_backend.running(emulator_server) as on_emulator:
        for aws in (on_moto, on_emulator):
            aws.dynamodb.put_item(TableName=aws.table, Item=BEFORE)
        yield on_moto, on_emulator


def outcome(aws: Aws, *statements: tuple[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    """Codes in their places, whether the table is named, and the items left."""
    requests = []
    for text, parameters in statements:
        request: dict[str, Any] = {"Statement": text.replace("$T", f'"{aws.table}"'), **more}
        requests.append(request | ({"Parameters": parameters} if parameters else {}))
    with aws_rules.off():  # the stand-ins' own judgement is compared
        responses = aws.dynamodb.batch_execute_statement(Statements=requests)["Responses"]
    return {
        "codes": [response.get("Error", {}).get("Code") for response in responses],
        "old": [response.get("Error", {}).get("Item") for response in responses],
        "tables": [response.get("TableName", aws.table) == aws.table for response in responses],
        "keys": [sorted(response) for response in responses],
        "items": all_items(aws),
    }


def compare(both: tuple[Aws, Aws], *statements: tuple[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    on_moto, on_emulator = (outcome(aws, *statements, **more) for aws in both)
    assert on_moto == on_emulator
    return on_moto


@pytest.mark.parametrize(
    ("condition", "parameters", "holds"),
    [
        ('"fence"=?', [{"N": "3"}], True),
        ('"fence"=?', [{"N": "3.0"}], True),
        ('"fence"=?', [{"S": "3"}], False),
        ('"fence"<=?', [{"N": "3"}], True),
        ('"fence"<=?', [{"N": "2"}], False),
        ('"fence"<=?', [{"S": "9"}], False),
        ('"fence"<?', [{"N": "4"}], True),
        ('"fence">?', [{"N": "3"}], False),
        ('"fence">=?', [{"N": "3"}], True),
        ('"fence"<>?', [{"N": "3"}], False),
        ('"fence"<>?', [{"N": "4"}], True),
        ("\"status\"='scheduled'", [], True),
        ("\"status\"='paused'", [], False),
        ("\"status\">'a'", [], True),
        ('"absent"=?', [{"N": "3"}], False),
        ('"absent"<=?', [{"N": "3"}], False),
        ('"absent" IS MISSING', [], True),
        ('"fence" IS MISSING', [], False),
        ('"fence" IS NOT MISSING', [], True),
        ('"absent" IS NOT MISSING', [], False),
        ('attribute_exists("fence")', [], True),
        ('attribute_not_exists("fence")', [], False),
        ('"retry"."base_s"=?', [{"N": "10"}], True),
        ('"attempts"[0]=?', [{"S": "two"}], False),
        ('"attempts"[1]."worker"=?', [{"S": "me"}], True),
        ('"attempts"[1]."worker"=?', [{"S": "you"}], False),
        ('"attempts"[0]."worker"=?', [{"S": "me"}], False),
        ('"attempts"[2]."worker"=?', [{"S": "me"}], False),
        ('"fence"=? AND "attempts"[1]."worker"=? AND "absent" IS MISSING', [{"N": "3"}, {"S": "me"}], True),
        ('"fence"=? AND "attempts"[1]."worker"=? AND "retry" IS MISSING', [{"N": "3"}, {"S": "me"}], False),
        ('"fence"=3 AND "status"=?', [{"S": "scheduled"}], True),
        ('"fence"=3 AND "status"=?', [{"S": "paused"}], False),
    ],
)
def test_conditions(both: tuple[Aws, Aws], condition: str, parameters: list[dict[str, Any]], holds: bool) -> None:
    found = compare(both, (f"UPDATE $T SET \"seen\"='y' WHERE {KEY} AND {condition}", parameters))
    assert found["codes"] == [None if holds else "ConditionalCheckFailed"]
    assert ("seen" in found["items"][0]) is holds


@pytest.mark.parametrize(
    ("clauses", "parameters"),
    [
        ('SET "fence"=? SET "due_at"=? REMOVE "due_key"', [{"N": "5"}, {"S": "x"}]),
        ('SET "fence"=?, "due_at"=?', [{"N": "5"}, {"S": "x"}]),
        ('SET "fence"="fence"+?', [{"N": "2"}]),
        ('SET "fence"="fence"-1', []),
        ('SET "new"="status"', []),
        ('SET "a"="fence" SET "b"="due_at"', []),
        ("SET \"text\"='it''s'", []),
        ('SET "flag"=TRUE', []),
        ('SET "retry"."base_s"=?', [{"N": "20"}]),
        ('SET "attempts"[0]=?', [{"S": "two"}]),
        ('REMOVE "due_key" REMOVE "due_at"', []),
        ('REMOVE "due_key", "due_at"', []),
        ('REMOVE "absent"', []),
        (
            'SET "status"=? SET "attempts"=? REMOVE "due_key"',
            [{"S": "x"}, {"L": [{"M": {"worker": {"S": "me"}, "outcome": {"S": "succeeded"}}}]}],
        ),
        ('SET "list"=?', [{"L": [{"M": {"a": {"NULL": True}}}]}]),
        ('SET "empty"=?', [{"S": ""}]),
    ],
)
def test_writes(both: tuple[Aws, Aws], clauses: str, parameters: list[dict[str, Any]]) -> None:
    found = compare(both, (f"UPDATE $T {clauses} WHERE {KEY}", parameters))
    assert found["codes"] == [None]
    assert found["items"] != [BEFORE] or "absent" in clauses


def test_an_item_that_is_not_there_is_not_made(both: tuple[Aws, Aws]) -> None:
    absent = KEY.replace("job#a", "job#b")
    found = compare(both, (f"UPDATE $T SET \"a\"='x' WHERE {absent}", []))
    assert found["codes"] == ["ConditionalCheckFailed"]
    assert found["items"] == [BEFORE]


def test_each_statement_alone_in_its_place(both: tuple[Aws, Aws]) -> None:
    found = compare(
        both,
        ("UPDATE $T SET \"a\"='x' WHERE \"pk\"='job#b' AND \"sk\"='job'", []),
        (f"UPDATE $T SET \"a\"='x' WHERE {KEY}", []),
        ("UPDATE $T SET \"a\"='x' WHERE \"pk\"='job#a'", []),
        (f'UPDATE $T SET "a"=? WHERE {KEY} AND "fence"=?', [{"S": "y"}]),
        (f"UPDATE $T WHERE {KEY}", []),
    )
    assert found["codes"] == ["ConditionalCheckFailed", None, *["ValidationError"] * 3]
    assert found["items"][0]["a"] == {"S": "x"}


def test_the_old_item_on_a_failed_condition(both: tuple[Aws, Aws]) -> None:
    statement = (f'UPDATE $T SET "a"=\'x\' WHERE {KEY} AND "fence"=9', [])
    assert compare(both, statement)["old"] == [None]
    assert compare(both, statement, ReturnValuesOnConditionCheckFailure="ALL_OLD")["old"] == [BEFORE]


def test_an_unknown_table(both: tuple[Aws, Aws]) -> None:
    codes = compare(both, (f'UPDATE "nowhere" SET "a"=\'x\' WHERE {KEY}', []))["codes"]
    assert codes == ["ResourceNotFound"]


INSERT = "INSERT INTO $T VALUE {'pk': ?, 'sk': 'job', 'status': ?, 'fence': ?, 'attempts': ?}"


def values(pk: str) -> list[dict[str, Any]]:
    return [{"S": pk}, {"S": "it's"}, {"N": "0"}, {"L": []}]


def test_inserts_are_judged_each_alone(both: tuple[Aws, Aws]) -> None:
    found = compare(both, (INSERT, values("job#b")), (INSERT, values("job#a")), (INSERT, values("job#c")))
    assert found["codes"] == [None, "DuplicateItem", None]
    assert [item["pk"]["S"] for item in found["items"]] == ["job#a", "job#b", "job#c"]
    assert found["items"][0] == BEFORE
    assert found["items"][1] == {
        "pk": {"S": "job#b"},
        "sk": {"S": "job"},
        "status": {"S": "it's"},
        "fence": {"N": "0"},
        "attempts": {"L": []},
    }


def test_an_insert_without_a_key_or_a_table(both: tuple[Aws, Aws]) -> None:
    found = compare(both, ("INSERT INTO $T VALUE {'sk': 'job'}", []), ("INSERT INTO \"nowhere\" VALUE {'pk': 'a'}", []))
    assert found["codes"] == ["ValidationError", "ResourceNotFound"]
    assert found["items"] == [BEFORE]
