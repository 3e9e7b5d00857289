"""JSON text → what a handler gets; what it returns → JSON text. It never loses a digit that the handler left alone."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import NoReturn, Self

import simplejson

from shared.targets.processes.limits import MAX_RESULT_BYTES


class JsonFloat(float):
    """A number such as 30.40, that Python would write in another way: a float that remembers how it was written.

    `str()` gives the number as it was in the payload, so `Decimal(str(x))` is exact; arithmetic gives plain floats.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.text,)


class UnfitValueError(Exception):
    """What the handler gave cannot be kept as JSON; the text says why."""


def parse(text: str) -> object:
    """The payload as a handler gets it. Raises ValueError for what is not JSON."""
    return json.loads(text, parse_float=_number, parse_constant=_no_constant)


def dump(value: object, what: str = "the returned value", max_bytes: int = MAX_RESULT_BYTES) -> str:
    """`value` as strict JSON text of at most `max_bytes`. Raises UnfitValueError for what cannot be that."""
    try:
        text = simplejson.dumps(
            _with_digits(value), use_decimal=True, ensure_ascii=False, encoding=None, separators=(",", ":")
        )
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UnfitValueError(f"{what} holds half of a surrogate pair, which is no text") from None
    except (TypeError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise UnfitValueError(f"{what} is not JSON: {error or type(error).__name__}") from None
    if size > max_bytes:
        raise UnfitValueError(f"{what} takes {size} bytes as JSON; at most {max_bytes} are kept")
    try:
        json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise UnfitValueError(f"{what} is not JSON: {error}") from None
    return text


def _with_digits(value: object) -> object:
    """The same value with each JsonFloat as the decimal it was written as."""
    if isinstance(value, JsonFloat):
        return Decimal(value.text)
    if type(value) is dict:
        return {key: _with_digits(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return [_with_digits(item) for item in value]  # type: ignore[attr-defined]
    return value


def _number(text: str) -> float:
    """A plain float wherever Python writes it just as the payload does."""
    number = float(text)
    return number if repr(number) == text else JsonFloat(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _distinct(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two keys of an object are the same text")
    return found
