"""Evaluates DynamoDB's condition and update expressions over plain items. It judges no syntax (aws_rules does).

Each text is read once and kept as a function of (item, names, values).
"""

import functools
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Item = dict[str, Any]
Value = dict[str, Any]
Names = dict[str, str]
Values = dict[str, Value]
Condition = Callable[[Item, Names, Values], bool]
Operand = Callable[[Item, Names, Values], Value | None]
Change = Callable[[Item, Item, Names, Values], None]  # (new item, old item, …)
Path = tuple[str | int, ...]

_TOKEN = re.compile(r"\s*([#:]\w+|[A-Za-z_]\w*|\d+|<=|>=|<>|[=<>+\-(),.\[\]])", re.ASCII)


def plain(value: Value) -> Any:
    """A value that compares as DynamoDB compares it, within its type."""
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content


def compared(left: Value | None, operator: str, right: Value | None) -> bool:
    """A missing operand, or one of another type, makes every comparison but `<>` false."""
    if left is None or right is None:
        return False
    if left.keys() != right.keys():
        return operator == "<>"
    one, other = plain(left), plain(right)
    return bool(_COMPARE[operator](one, other))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def value_at(item: Item, path: Path) -> Value | None:
    """The value at `path` of real names and list places; None where there is none."""
    found: Any = item.get(str(path[0]))
    for part in path[1:]:
        if found is None:
            return None
        if isinstance(part, int):
            inner = found.get("L", [])
            found = inner[part] if part < len(inner) else None
        else:
            found = found.get("M", {}).get(part)
    return found  # type: ignore[no-any-return]


def put_at(item: Item, path: Path, value: Value) -> None:
    """Set the value at `path`; containers on the way are copied, so that an older item keeps its own.

    Raises KeyError or IndexError where there is no container: AWS refuses such a path.
    """
    if len(path) == 1:
        item[str(path[0])] = value
        return
    item[str(path[0])] = _replaced(item[str(path[0])], path[1:], value)


def remove_at(item: Item, path: Path) -> None:
    """Take away what is at `path`, if anything is. Raises as `put_at`."""
    if len(path) == 1:
        item.pop(str(path[0]), None)
        return
    item[str(path[0])] = _replaced(item[str(path[0])], path[1:], None)


def _replaced(container: Value, path: Path, value: Value | None) -> Value:
    """`container` with `value` at `path`; None: without what is there."""
    part = path[0]
    if isinstance(part, int):
        places = list(container["L"])
        if len(path) > 1:
            places[part] = _replaced(places[part], path[1:], value)
        else:
            places[part : part + 1] = [value] if value is not None else []
        return {"L": places}
    members = dict(container["M"])
    if len(path) > 1:
        members[part] = _replaced(members[part], path[1:], value)
    elif value is not None:
        members[part] = value
    else:
        members.pop(part, None)
    return {"M": members}


def size(value: Value | None) -> Value | None:
    """What the function `size` makes of a map, list or set; None for anything else, which Duetime never asks of."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    return {"N": str(len(content))} if kind in ("SS", "NS", "BS", "L", "M") else None


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = [match[1] for match in _TOKEN.finditer(text)][::-1]

    def has(self, *wanted: str) -> str | None:
        if self.tokens and self.tokens[-1].upper() in wanted:
            return self.tokens.pop().upper()
        return None

    def listed(self, read: Callable[[], Any]) -> list[Any]:
        found = [read()]
        while self.has(","):
            found.append(read())
        return found

    def path(self) -> Callable[[Names], Path]:
        parts: list[str | int] = [self.tokens.pop()]
        while True:
            if self.has("."):
                parts.append(self.tokens.pop())
            elif self.has("["):
                parts.append(int(self.tokens.pop()))
                self.tokens.pop()
            else:
                break
        return lambda names: tuple(names[part] if isinstance(part, str) else part for part in parts)

    def operand(self) -> Operand:
        if self.tokens[-1].startswith(":"):
            name = self.tokens.pop()
            return lambda item, names, values: values[name]
        if self.tokens[-1] == "size":
            del self.tokens[-2:]
            of = self.path()
            self.tokens.pop()
            return lambda item, names, values: size(value_at(item, of(names)))
        path = self.path()
        return lambda item, names, values: value_at(item, path(names))

    def any_of(self) -> Condition:
        parts = [self.all_of()]
        while self.has("OR"):
            parts.append(self.all_of())
        return lambda *given: any(part(*given) for part in parts)

    def all_of(self) -> Condition:
        parts = [self.one()]
        while self.has("AND"):
            parts.append(self.one())
        return lambda *given: all(part(*given) for part in parts)

    def one(self) -> Condition:
        if self.has("NOT"):
            inner = self.one()
            return lambda *given: not inner(*given)
        if self.has("("):
            inner = self.any_of()
            self.tokens.pop()
            return inner
        word = self.tokens[-1]
        if word in ("attribute_exists", "attribute_not_exists", "begins_with"):
            return self._function()
        return self._comparison()

    def _function(self) -> Condition:
        word = self.tokens.pop()
        self.tokens.pop()
        operands = self.listed(self.operand)
        self.tokens.pop()
        first = operands[0]
        if word == "begins_with":
            prefix = operands[1]
            return lambda *given: str((first(*given) or {}).get("S", "")).startswith(prefix(*given)["S"])
        exists = word == "attribute_exists"
        return lambda *given: (first(*given) is not None) == exists

    def _comparison(self) -> Condition:
        first = self.operand()
        if self.has("BETWEEN"):
            low = self.operand()
            self.tokens.pop()
            high = self.operand()
            return lambda *given: (
                compared(first(*given), ">=", low(*given)) and compared(first(*given), "<=", high(*given))
            )
        if self.has("IN"):
            self.tokens.pop()
            members = self.listed(self.operand)
            self.tokens.pop()
            return lambda *given: any(compared(first(*given), "=", member(*given)) for member in members)
        operator, second = self.tokens.pop(), self.operand()
        return lambda *given: compared(first(*given), operator, second(*given))

    def update(self) -> list[Change]:
        changes: list[Change] = []
        while word := self.has("SET", "REMOVE"):
            changes += self.listed(self._set if word == "SET" else self._remove)
        return changes

    def _set(self) -> Change:
        path = self.path()
        self.tokens.pop()
        value = self._sum()

        def change(new: Item, old: Item, names: Names, values: Values) -> None:
            found = value(old, names, values)
            if found is None:
                raise KeyError("an operand of SET has no value")
            put_at(new, path(names), found)

        return change

    def _remove(self) -> Change:
        path = self.path()
        return lambda new, old, names, values: remove_at(new, path(names))

    def _sum(self) -> Operand:
        left = self._term()
        sign = self.has("+", "-")
        if not sign:
            return left
        right = self._term()
        return lambda *given: added(left(*given), sign, right(*given))

    def _term(self) -> Operand:
        word = self.tokens[-1]
        if word not in ("if_not_exists", "list_append"):
            return self.operand()
        del self.tokens[-2:]
        first = self._term()
        self.tokens.pop()
        second = self._term()
        self.tokens.pop()
        if word == "if_not_exists":
            return lambda *given: first(*given) or second(*given)
        return lambda *given: {"L": (first(*given) or {})["L"] + (second(*given) or {})["L"]}


def added(left: Value | None, sign: str, right: Value | None) -> Value:
    """The sum or difference of two numbers."""
    one, other = Decimal((left or {})["N"]), Decimal((right or {})["N"])
    return {"N": str(one + other if sign == "+" else one - other)}


@functools.cache
def condition(text: str) -> Condition:
    """A condition, filter or key condition."""
    return _Reader(text).any_of()


@functools.cache
def update(text: str) -> tuple[Change, ...]:
    """The changes of an UpdateExpression, all judged on the old item."""
    return tuple(_Reader(text).update())
