"""pydantic's findings in plain words, in the order of the body. It never shows a name of ours or of Python's."""

from collections.abc import Callable, Mapping, Sequence, Sized
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from functions.submit.errors import FieldError
from functions.submit.strict_json import Path, path_text, show

MAX_REPORTED = 100

LATER = {  # field → what a later version will take
    "target.kind": ("lambda", "http", "sqs", "sns", "eventbridge", "stepfunctions", "aws"),
}
_PATTERNS = {  # the first that the pattern has
    "A-Za-z_": "must be the name of a kind of error: letters, digits, _ or ., and no digit first",
    "A-Za-z0-9": "must begin with a letter or digit and go on with at most 127 letters, digits, _ . : or -",
    "x00": "must not contain control characters",
}
_WORDS: dict[str, Callable[[Mapping[str, object]], str]] = {
    "string_type": lambda _: "must be text",
    "int_type": lambda _: "must be a whole number",
    "dict_type": lambda _: "must be an object",
    "list_type": lambda _: "must be a list",
    "model_type": lambda _: "must be an object",
    "model_attributes_type": lambda _: "must be an object",
    "string_too_short": lambda c: f"must have at least {_count(c['min_length'], 'character')}",
    "string_too_long": lambda c: f"must have at most {_count(c['max_length'], 'character')}",
    "too_long": lambda c: f"must have at most {_count(c['max_length'], 'entry', 'entries')}",
    "greater_than_equal": lambda c: f"must be at least {_bound(c['ge'])}",
    "less_than_equal": lambda c: f"must be at most {_bound(c['le'])}",
    "literal_error": lambda c: f"must be {str(c['expected']).replace(chr(39), chr(34))}",
    "string_pattern_mismatch": lambda c: next(words for mark, words in _PATTERNS.items() if mark in str(c["pattern"])),
}
_CUSTOM = frozenset({"number", "handler", "timeout", "both"})


def field_errors(
    error: ValidationError, body: Mapping[str, object], model: type[BaseModel], also: Sequence[FieldError] = ()
) -> list[FieldError]:
    """What `error` found in `body`, and `also`: one a field, in the body's own order, what is missing last.

    At most the first 100: who sends ten thousand unknown fields need not wait for a sentence on each.
    """
    details = error.errors(include_url=False)
    other_kinds = {d["loc"][:-1] for d in details if d["loc"][-2:] == ("target", "kind")}
    details = [d for d in details if d["loc"][:-1] not in other_kinds or d["loc"][-1] == "kind"]
    found: dict[Path, ErrorDetails | FieldError] = {(fault.field,): fault for fault in also}
    found |= {_path(detail["loc"]): detail for detail in reversed(details)}
    first = sorted(found, key=_Places(body).of)[:MAX_REPORTED]
    return [FieldError(path_text(path), _words(found[path], body, model)) for path in first]


def _path(loc: Path) -> Path:
    return tuple(part for part in loc if part != "[key]")


class _Places:
    """Where a path stands in a body."""

    def __init__(self, body: object) -> None:
        self._body = body
        self._names: dict[int, dict[str, int]] = {}  # by id: each object is gone through once

    def of(self, path: Path) -> list[int]:
        """Its positions level by level; what is not there comes after all that is."""
        places: list[int] = []
        body = self._body
        for part in path:
            names = self._of_names(body) if isinstance(body, Mapping) else {}
            places.append(names.get(str(part), len(names)))
            body = body[part] if isinstance(body, Mapping) and part in names else None
        return places

    def _of_names(self, body: Mapping[str, object]) -> dict[str, int]:
        if id(body) not in self._names:
            self._names[id(body)] = {name: place for place, name in enumerate(body)}
        return self._names[id(body)]


def _words(fault: ErrorDetails | FieldError, body: Mapping[str, object], model: type[BaseModel]) -> str:
    return fault.message if isinstance(fault, FieldError) else _message(fault, body, model)


def _message(detail: ErrorDetails, body: Mapping[str, object], model: type[BaseModel]) -> str:
    kind, field = detail["type"], path_text(detail["loc"])
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return _unknown(field, detail["loc"], model)
    value = _sent(detail, body)
    words = detail["msg"] if kind in _CUSTOM else _WORDS.get(kind, _no_words)(detail.get("ctx", {}))
    if kind == "too_long":
        return f"{words}, not {len(value) if isinstance(value, Sized) else 0}"
    later = LATER.get(field, ())
    coming = " (the others come in a later version)" if isinstance(value, str) and value in later else ""
    return f"{words}, not {show(value)}{coming}"


def _sent(detail: ErrorDetails, body: object) -> object:
    """The value as it stands in the body; pydantic tells of what its own conversions made of it."""
    for part in detail["loc"]:
        if part == "[key]":
            return detail["loc"][-2]
        if isinstance(body, Mapping):
            body = body[part]
        elif isinstance(body, list):
            body = body[int(part)]
        else:
            break
    return body


def _unknown(field: str, loc: tuple[str | int, ...], model: type[BaseModel]) -> str:
    if field in LATER:
        return "is not supported in this version"
    known = list(model.model_fields)
    for part in loc[:-1]:
        annotation = model.model_fields[str(part)].annotation
        known = (
            list(annotation.model_fields) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []
        )
    near = get_close_matches(str(loc[-1]), known, n=1)
    return "is not a field that is known here" + (f"; did you mean {near[0]}?" if near else "")


def _no_words(_: Mapping[str, object]) -> str:
    return "must be something else"  # a test holds that no fault of a field comes to this


def _bound(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and value < 1e6 else f"{value}"


def _count(number: object, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
