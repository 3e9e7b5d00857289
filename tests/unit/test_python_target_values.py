"""Payloads and results keep their JSON (C56); a result that cannot be kept never makes an attempt fail."""

import json
import pickle
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.run import Outcome
from shared.targets.processes.limits import MAX_RESULT_BYTES
from shared.targets.processes.values import JsonFloat, dump, parse
from shared.targets.python import PythonTarget
from tests.support.python_targets import attempt, running, write_package

SOURCE = """
import decimal, time
from datetime import datetime

@handler("echo")
def echo(payload, run):
    return payload

@handler("return")
def give(payload, run):
    return eval(payload)
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PythonTarget]:
    with running(write_package(tmp_path_factory.mktemp("values"), {"values": SOURCE})) as target:
        yield target


@pytest.mark.parametrize(
    "text",
    [
        "0.1", "30.40", "1.0", "1", "-0.0", "true", "null", '""', "9007199254740993", "1" + "0" * 38, "1e100", "1.5E+3",
        "12345678901234567890123456789012345678901", "0.12345678901234567890123456789012345678901",
        '{"b":1,"a":[30.40,{"c":[]}]}', '"é\U0001f600\\u0000"', '{"":{}}',
    ],
)  # fmt: skip
def test_what_goes_in_comes_out(target: PythonTarget, text: str) -> None:
    result = attempt(target, "echo", text)
    assert (result.outcome, result.error, result.note) == (Outcome.SUCCEEDED, None, None)
    assert _exact(result.result or "") == _exact(text)


def _exact(text: str) -> object:
    """The value with each number as it is written, key order included."""
    as_decimal = json.loads(text, parse_float=lambda n: ("decimal", str(Decimal(n))), object_pairs_hook=list)
    return repr(as_decimal)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_any_json_is_kept(value: object) -> None:
    text = json.dumps(value)
    assert _exact(dump(parse(text))) == _exact(text)


@pytest.mark.parametrize("text", ["30.40", "1E2", "0.10000000000000000001"])
def test_a_number_is_a_float_that_knows_its_digits(text: str) -> None:
    number = parse(text)
    assert isinstance(number, JsonFloat)
    assert number == float(text)
    assert hash(number) == hash(float(text))
    assert f"{number}" == str(number) == repr(number) == text
    assert Decimal(str(number)) == Decimal(text)
    assert json.loads(json.dumps(number)) == float(text)
    for copied in (pickle.loads(pickle.dumps(number)), deepcopy(number)):
        assert str(copied) == text
    assert type(number * 2) is float


def test_an_ordinary_number_is_an_ordinary_float() -> None:
    assert [type(n) for n in parse("[0.1, 1.0, -0.0, 1e+100]")] == [float] * 4  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("None", "null"),
        ("(1, 2)", "[1,2]"),
        ("{7: 'a', None: 2, True: 3}", '{"7":"a","null":2,"true":3}'),
        ("decimal.Decimal('1.10')", "1.10"),
        ("'x' * 16382", '"' + "x" * 16382 + '"'),
        ("'é' * 8191", '"' + "é" * 8191 + '"'),
        ("'\"' * 8191", '"' + '\\"' * 8191 + '"'),
        ("'\U0001f600' * 4095", '"' + "\U0001f600" * 4095 + '"'),
    ],
)
def test_results_that_are_kept(target: PythonTarget, expression: str, text: str) -> None:
    result = attempt(target, "return", json.dumps(expression))
    assert (result.note, result.result) == (None, text)
    assert len(text.encode()) <= MAX_RESULT_BYTES


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("float('nan')", "not JSON"),
        ("[float('inf')]", "not JSON"),
        ("decimal.Decimal('NaN')", "not JSON"),
        ("decimal.Decimal('Infinity')", "not JSON"),
        ("object()", "not JSON"),
        ("datetime(2026, 1, 1)", "not JSON"),
        ("{1, 2}", "not JSON"),
        ("b'bytes'", "not JSON"),
        ("{(1, 2): 3}", "not JSON"),
        ("{1: 2, '1': 3}", "two keys of an object are the same text"),
        ("10 ** 5000", "not JSON"),
        ("(lambda l: l.append(l) or l)([])", "not JSON"),
        ("__import__('functools').reduce(lambda a, _: [a], range(100000), [])", "not JSON"),
        ("'\\ud800'", "surrogate"),
        ("'x' * 16383", "takes 16385 bytes as JSON; at most 16384 are kept"),
        ("'é' * 8192", "takes 16386 bytes"),
        ("'x' * 50_000_000", "takes 50000002 bytes"),
        ("lambda: 1", "not JSON"),
        ("echo", "not JSON"),
    ],
)
def test_a_result_that_cannot_be_kept_says_why(target: PythonTarget, expression: str, why: str) -> None:
    result = attempt(target, "return", json.dumps(expression))
    assert (result.outcome, result.result, result.error) == (Outcome.SUCCEEDED, None, None)
    assert why in (result.note or "")
    assert len((result.note or "").encode()) <= 512


def test_a_payload_of_256_kib_arrives(target: PythonTarget) -> None:
    text = json.dumps("é" * 131_000, ensure_ascii=False)
    assert attempt(target, "return", json.dumps(f"len({text})")).result == "131000"
