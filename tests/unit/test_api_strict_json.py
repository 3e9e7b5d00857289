"""JSON is read strictly and written to the digit."""

import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.submit import strict_json
from functions.submit.errors import InvalidRequestError
from shared.model.errors import InputError

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values))
def test_what_is_written_reads_back(value: dict[str, strict_json.Json]) -> None:
    text = strict_json.write(value)
    assert strict_json.read_object(text) == value
    assert strict_json.write(strict_json.read_object(text)) == text


@pytest.mark.parametrize("number", ["0", "-1", "1.0", "30.40", "-0.0", "1e5", "1E+05", "1.10E+2", "0.1e-7", "9" * 4300])
def test_numbers_keep_their_letters(number: str) -> None:
    text = f'{{"n":{number}}}'
    assert strict_json.write(strict_json.read_object(text)) == text


def test_a_fraction_is_a_decimal_and_a_whole_number_an_int() -> None:
    read = strict_json.read_object('{"a":1.10,"b":10,"c":true}')
    assert (read["a"], type(read["b"]), read["c"]) == (Decimal("1.1"), int, True)


def test_the_deepest_that_is_taken() -> None:
    def nested(levels: int) -> str:
        return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)

    assert strict_json.read_object(nested(100))
    with pytest.raises(InputError, match="nested more than 100 levels"):
        strict_json.read_object(nested(101))
    # Brackets inside of a string are no levels.
    assert strict_json.read_object('{"a":"' + "[" * 500 + '\\"' + "{" * 500 + '"}')


def test_all_faults_are_found_in_order() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        strict_json.read_object('{"a":NaN,"b":[1,1e400],"c":{"d":"\\udc00","x y":1,"x y":2}}')
    assert [fault.field for fault in caught.value.errors] == ["a", "b[1]", 'c["x y"]', "c.d"]


def test_the_list_of_faults_is_short() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        strict_json.read_object('{"a":[' + ",".join(["NaN"] * 10_000) + "]}")
    assert len(caught.value.errors) == 20


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"' + '\\"' * 150_000,
        '{"a":"' + "\\" * 300_001,
        '"' * 300_000,
        "[" * 300_000,
        '{"a":' * 60_000,
        '{"a":' + "9" * 300_000 + "}",
        '{"a":1.' + "9" * 300_000 + "}",
        '{"a":1e' + "9" * 300_000 + "}",
        "{" + ",".join(f'"{n}":1' for n in range(30_000)) + ',"7":1}',
        '{"a":"' + "\\ud800" * 50_000 + '"}',
    ],
    ids=range(10),
)
def test_hostile_text_is_refused_in_bounded_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError) as caught:
        strict_json.read_object(text)
    assert time.process_time() - started < 1
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "body"),
        (("retry", "max_attempts"), "retry.max_attempts"),
        (("payload", 3, "a"), "payload[3].a"),
        (("tags", "a b"), 'tags["a b"]'),
        (("",), '[""]'),
        (("\ud800",), '["\\ud800"]'),
        (("tags", "x" * 100), 'tags["' + "x" * 60 + '…" (100 characters)]'),
    ],
)
def test_paths(path: tuple[str | int, ...], text: str) -> None:
    assert strict_json.path_text(path) == text


def test_values_are_shown_short_and_printable() -> None:
    shown = [strict_json.show(v) for v in (None, True, 5, Decimal("1.50"), "é", "\u202e", [1], {"a": 1})]
    assert shown == ["null", "true", "5", "1.50", '"é"', '"\\u202e"', "a list", "an object"]
    assert len(strict_json.show("x" * 10**6)) < 100
    assert len(strict_json.show(10**4000)) < 100
