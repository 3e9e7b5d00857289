"""JSON read to the letter of RFC 8259, and written so that numbers keep their digits. It never knows what a text means.

Python's own reading is too kind for a scheduler: it takes NaN, lets the last of equal keys win, makes 1e400 infinite.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from math import isfinite

import simplejson

from functions.submit.errors import FieldError, InvalidRequestError
from shared.model.errors import InputError

Path = tuple[str | int, ...]

MAX_DEPTH = 100
MAX_DIGITS = 4300  # Python refuses to read longer whole numbers
_RANGE = "must be a number within ±1.797e308"
MAX_REPORTED = 20  # faults listed at most

Json = None | bool | int | Decimal | str | list["Json"] | dict[str, "Json"]

# One token that matters for the depth. A string without an end is one token too, or the search would be quadratic.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,64}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Refused:
    """Stands where a value cannot be taken, until its path is known."""

    message: str


class _Number(Decimal):
    """Keeps its own text: Decimal would write 1.10E+2 as 110, which a handler then sees as a whole number."""

    text: str

    def __str__(self) -> str:
        return self.text


class _Repeating(dict[str, object]):
    """An object of which one key came twice."""

    def __init__(self, pairs: Sequence[tuple[str, object]], key: str) -> None:
        super().__init__(pairs)
        self.key = key


def read_object(text: str) -> dict[str, Json]:
    """The JSON object that is all of `text`. Numbers with a fraction or an exponent come as Decimal.

    Raises InputError with the field named (`body` when it is the text itself).
    """
    value = _parse(text)
    faults = list(islice(_faults(value, ()), MAX_REPORTED))
    if faults:
        raise InvalidRequestError(faults)
    if not isinstance(value, dict):
        raise InputError("body", f"must be one JSON object, not {show(value)}")
    return value


def write(value: object, *, sort_keys: bool = False) -> str:
    """`value` as compact JSON text."""
    return simplejson.dumps(
        value, use_decimal=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=sort_keys
    )


def embed(text: str) -> object:
    """A JSON text that `write` is to put into its document to the letter."""
    return simplejson.RawJSON(text)


def path_text(path: Sequence[str | int]) -> str:
    """`retry.max_attempts`, `tags["a b"]`, `payload.list[3]`; `body` for the document itself."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text or "body"


def show(value: object) -> str:
    """`value` for an error message: as JSON, in ASCII where it must, short."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        plain = value[:61].isprintable()
        shown = simplejson.dumps(value if len(value) <= 60 else value[:60] + "…", ensure_ascii=not plain)
        return shown if len(value) <= 60 else f"{shown} ({len(value):,} characters)"
    shown = simplejson.dumps(value, use_decimal=True)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _parse(text: str) -> object:
    if text.startswith("\ufeff"):
        raise InputError("body", "must not begin with a byte order mark")
    if not text.strip(" \t\r\n"):
        raise InputError("body", "is empty; a JSON object is expected")
    if _depth(text) > MAX_DEPTH:
        raise InputError("body", f"is nested more than {MAX_DEPTH} levels deep")
    try:
        return simplejson.loads(
            text,
            parse_int=_whole_number,
            parse_float=_number,
            parse_constant=lambda name: _Refused(f"must not be {name}, which JSON does not have"),
            object_pairs_hook=_object,
            allow_nan=True,  # so that the hook above sees them
        )
    except simplejson.JSONDecodeError as error:
        raise InputError("body", f"is not JSON: {error}") from None


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest


def _whole_number(text: str) -> int | _Refused:
    digits = len(text.lstrip("-"))
    return int(text) if digits <= MAX_DIGITS else _Refused(f"must have at most {MAX_DIGITS:,} digits, not {digits:,}")


def _number(text: str) -> Decimal | _Refused:
    if len(text) > MAX_DIGITS:
        return _Refused(f"must have at most {MAX_DIGITS:,} digits")
    try:
        number = _Number(text)
    except InvalidOperation:
        return _Refused(f"must have an exponent of fewer digits than {show(text)[1:-1]}")
    number.text = text
    return number if isfinite(Decimal.__float__(number)) else _Refused(f"{_RANGE}, not {text[:40]}")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return _Repeating(pairs, key)
        seen.add(key)
    return result


def _faults(value: object, path: Path) -> Iterator[FieldError]:
    if isinstance(value, _Refused):
        yield FieldError(path_text(path), value.message)
    elif isinstance(value, str):
        if _SURROGATE.search(value):
            yield FieldError(path_text(path), "must be text that UTF-8 can hold, without lone surrogates")
    elif isinstance(value, dict):
        if isinstance(value, _Repeating):
            yield FieldError(path_text((*path, value.key)), "is there more than once")
        for key, inner in value.items():
            if _SURROGATE.search(key):
                yield FieldError(path_text((*path, key)), "has a name with a lone surrogate, which UTF-8 cannot hold")
            yield from _faults(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _faults(inner, (*path, index))
