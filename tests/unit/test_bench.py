"""The benches' own rules: what they write into docs/performance.md, what they count. It measures nothing."""

import pytest

from bench import idle
from bench.counting import read_units, write_units
from bench.page import PAGE, filled


def test_a_table_goes_between_its_markers_and_nowhere_else() -> None:
    page = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n<!-- bench:y -->\ny\n<!-- /bench:y -->\n"
    assert filled(page, {"x": "new"}) == page.replace("old", "new")


def test_a_table_without_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match="no markers for z"):
        filled("a\n", {"z": "new"})


def test_the_page_has_todays_idle_sums() -> None:
    assert idle.table() in PAGE.read_text()


@pytest.mark.parametrize(
    ("statement", "units"),
    [
        ('UPDATE "t" SET "fence"=? SET "due_at"=? SET "due_key"=? WHERE "pk"=?', 3),  # moved in the index
        ('UPDATE "t" SET "fence"=? REMOVE "due_key" REMOVE "due_at" WHERE "pk"=?', 2),  # taken out of it
        ("INSERT INTO \"t\" VALUE {'pk': ?, 'due_key': ?, 'due_at': ?, 'list_key': ?}", 3),  # put into two
    ],
)
def test_statements_pay_for_the_index(statement: str, units: float) -> None:
    params = {"Statements": [{"Statement": statement}] * 2}
    consumed = [{"TableName": "t", "CapacityUnits": 2.0}]
    answer = {"Responses": [{}, {"Error": {"Code": "ConditionalCheckFailed"}}], "ConsumedCapacity": consumed}
    assert write_units("batch_execute_statement", params, answer) == units + 1  # a refused one pays for the table


def test_reads_are_paid_by_4_kb_and_an_index_half() -> None:
    item = {"pk": {"S": "x" * 5000}}
    assert read_units("get_item", {}, {"Item": item}) == 2
    assert read_units("get_item", {}, {}) == 1
    assert read_units("query", {"IndexName": "due"}, {"Items": [item]}) == 1
    assert read_units("query", {"IndexName": "due"}, {"Items": []}) == 0.5
