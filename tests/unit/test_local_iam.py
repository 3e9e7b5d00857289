"""PartiQL statements are authorised by verb and table, as AWS does it."""

import json

import pytest

from duetime.emulator.iam import statement_checks

TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/Jobs-1.a_b"


def checks(*statements: str) -> list[tuple[str, str]]:
    body = json.dumps({"Statements": [{"Statement": statement} for statement in statements]})
    return statement_checks(body.encode(), "us-east-1", "000000000000")


@pytest.mark.parametrize(
    ("statement", "action"),
    [
        ('UPDATE "Jobs-1.a_b" SET "status" = ? WHERE pk = ?', "PartiQLUpdate"),
        ('  update "Jobs-1.a_b"\nSET x = 1', "PartiQLUpdate"),
        ("INSERT INTO \"Jobs-1.a_b\" VALUE {'pk': ?}", "PartiQLInsert"),
        ('DELETE FROM "Jobs-1.a_b" WHERE pk = ?', "PartiQLDelete"),
        ('SELECT a, "from" FROM "Jobs-1.a_b" WHERE pk = ?', "PartiQLSelect"),
    ],
)
def test_each_verb_is_an_action_of_its_own(statement: str, action: str) -> None:
    assert checks(statement) == [(f"dynamodb:{action}", TABLE)]


def test_an_index_is_a_resource_of_its_own() -> None:
    assert checks('SELECT * FROM "Jobs-1.a_b"."due"') == [("dynamodb:PartiQLSelect", f"{TABLE}/index/due")]


def test_equal_checks_are_made_once() -> None:
    update = 'UPDATE "Jobs-1.a_b" SET x = 1'
    assert checks(update, update) == [("dynamodb:PartiQLUpdate", TABLE)]


def test_one_that_cannot_be_read_leaves_none_so_that_all_are_refused() -> None:
    assert checks('UPDATE "Jobs-1.a_b" SET x = 1', "DROP TABLE x") == []
    assert statement_checks(b"{", "us-east-1", "0") == []
    assert statement_checks(b'{"Statement": "UPDATE t SET x = 1"}', "r", "0") == [
        ("dynamodb:PartiQLUpdate", "arn:aws:dynamodb:r:0:table/t")
    ]
