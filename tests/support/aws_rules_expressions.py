"""Reads DynamoDB expressions as strictly as AWS does, and more: every name and value through a placeholder.

It never evaluates one. Grammar:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
NAMES = _GUIDE + "Expressions.ExpressionAttributeNames.html"  # 573 reserved words, more to come: a placeholder for each
OPERATORS = _GUIDE + "Expressions.OperatorsAndFunctions.html"
UPDATES = _GUIDE + "Expressions.UpdateExpressions.html"
QUERY = _GUIDE + "Query.KeyConditionExpressions.html"
CONSTRAINTS = _GUIDE + "Constraints.html"

MAX_BYTES = 4096
MAX_IN = 100
_TOKEN = re.compile(
    r"\s*(?:(?P<name>#\w+)|(?P<value>:\w+)|(?P<word>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign><=|>=|<>|[=<>+\-(),.\[\]]))",
    re.ASCII,
)
_COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")

Path = tuple[str | int, ...]  # the first part is an attribute's real name


class ExpressionError(Exception):
    """An expression that AWS would refuse; the message says why."""


@dataclass(frozen=True)
class Operand:
    """A path, a value's placeholder, or `size(path)`."""

    path: Path | None = None
    value: str | None = None
    function: str | None = None


@dataclass(frozen=True)
class Comparison:
    """One comparison or function: `operator` is a comparator, BETWEEN, IN or the function's name."""

    operator: str
    operands: tuple[Operand, ...]


@dataclass
class Placeholders:
    """The names and values of one request, and which of them its expressions have used."""

    names: Mapping[str, str]
    values: Mapping[str, Mapping[str, Any]]
    used: set[str] = field(default_factory=set)

    def name(self, placeholder: str) -> str:
        if placeholder not in self.names:
            raise ExpressionError(f"{placeholder} is not in ExpressionAttributeNames ({NAMES})")
        self.used.add(placeholder)
        return self.names[placeholder]

    def value(self, placeholder: str) -> str:
        if placeholder not in self.values:
            raise ExpressionError(f"{placeholder} is not in ExpressionAttributeValues ({NAMES})")
        self.used.add(placeholder)
        return placeholder


@dataclass
class Update:
    """What an UpdateExpression does. `writes`: the path of each SET, ADD or DELETE, and the values written there."""

    writes: list[tuple[Path, list[str]]] = field(default_factory=list)
    removes: list[Path] = field(default_factory=list)

    def paths(self) -> list[Path]:
        return [path for path, _ in self.writes] + self.removes


class _Reader:
    def __init__(self, text: str, placeholders: Placeholders) -> None:
        if len(text.encode()) > MAX_BYTES:
            raise ExpressionError(
                f"an expression has at most {MAX_BYTES} bytes, not {len(text.encode())} ({CONSTRAINTS})"
            )
        self._placeholders = placeholders
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        self.comparisons: list[Comparison] = []
        self.words: list[str] = []  # AND, OR, NOT as they came
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(f"cannot be read at {text[position : position + 20]!r} ({OPERATORS})")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            position = match.end()

    # tokens

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        index = self._at + ahead
        return self._tokens[index] if index < len(self._tokens) else ("end", "")

    def take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def has(self, *texts: str) -> bool:
        """Keywords may be in any case."""
        kind, text = self.peek()
        if kind in ("sign", "word") and text.upper() in texts:
            self._at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.has(text):
            self.refuse(text)

    def refuse(self, wanted: str) -> None:
        kind, text = self.peek()
        if kind == "word":
            raise ExpressionError(f"the bare word {text!r}: every name goes through a #placeholder ({NAMES})")
        raise ExpressionError(f"expected {wanted}, found {text or 'the end'!r} ({OPERATORS})")

    def end(self) -> None:
        if self.peek()[0] != "end":
            self.refuse("the end")

    # operands

    def path(self) -> Path:
        if self.peek()[0] != "name":
            self.refuse("a #name")
        parts: list[str | int] = [self._placeholders.name(self.take())]
        while True:
            if self.has("."):
                if self.peek()[0] != "name":
                    self.refuse("a #name")
                parts.append(self._placeholders.name(self.take()))
            elif self.has("["):
                if self.peek()[0] != "number":
                    self.refuse("a number")
                parts.append(int(self.take()))
                self.need("]")
            else:
                return tuple(parts)

    def operand(self) -> Operand:
        kind, text = self.peek()
        if kind == "value":
            return Operand(value=self._placeholders.value(self.take()))
        if (kind, text) == ("word", "size") and self.peek(1)[1] == "(":
            self._at += 2
            path = self.path()
            self.need(")")
            return Operand(path=path, function="size")
        return Operand(path=self.path())

    def listed(self, read: Callable[[], Any]) -> list[Any]:
        found = [read()]
        while self.has(","):
            found.append(read())
        return found

    # conditions

    def condition(self) -> None:
        self._junction()
        while self.peek()[1].upper() in ("AND", "OR"):
            self.words.append(self.take().upper())
            self._junction()

    def _junction(self) -> None:
        if self.has("NOT"):
            self.words.append("NOT")
            self._junction()
        elif self.has("("):
            if self.peek()[1] == "(" and self._closes_with_outer():
                raise ExpressionError(f"has redundant parentheses ({OPERATORS})")
            self.condition()
            self.need(")")
        elif self.peek()[0] == "word" and self.peek()[1] in _FUNCTIONS and self.peek(1)[1] == "(":
            self._function()
        else:
            self._comparison()

    def _closes_with_outer(self) -> bool:
        depth = 0
        for index in range(self._at, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[index][1], 0)
            if depth == 0:
                return self._tokens[index + 1 : index + 2] == [("sign", ")")]
        return False

    def _function(self) -> None:
        name = self.take()
        self.need("(")
        operands = [Operand(path=self.path())]
        while self.has(","):
            operands.append(self.operand())
        self.need(")")
        if len(operands) != _FUNCTIONS[name]:
            raise ExpressionError(f"{name} takes {_FUNCTIONS[name]} operands, not {len(operands)} ({OPERATORS})")
        self.comparisons.append(Comparison(name, tuple(operands)))

    def _comparison(self) -> None:
        first = self.operand()
        if self.has("BETWEEN"):
            low = self.operand()
            self.need("AND")
            self._compare("BETWEEN", first, low, self.operand())
        elif self.has("IN"):
            self.need("(")
            members = self.listed(self.operand)
            self.need(")")
            if len(members) > MAX_IN:
                raise ExpressionError(f"IN takes at most {MAX_IN} operands, not {len(members)} ({CONSTRAINTS})")
            self._compare("IN", first, *members)
        elif self.peek()[1] in _COMPARATORS:
            self._compare(self.take(), first, self.operand())
        else:
            self.refuse("a comparison")

    def _compare(self, operator: str, first: Operand, *others: Operand) -> None:
        if first in others and operator != "IN":
            raise ExpressionError(f"the operands of {operator} must differ ({OPERATORS})")
        for operand in (first, *others):
            kind = next(iter(self._placeholders.values[operand.value]), None) if operand.value else None
            if kind and operator not in ("=", "<>", "IN") and kind not in ("S", "N", "B"):
                raise ExpressionError(f"{operator} cannot compare a {kind} ({OPERATORS})")
        self.comparisons.append(Comparison(operator, (first, *others)))

    # updates

    def update(self) -> Update:
        update = Update()
        seen: list[str] = []
        while self.peek()[0] == "word" and self.peek()[1].upper() in ("SET", "REMOVE", "ADD", "DELETE"):
            section = self.take().upper()
            if section in seen:
                raise ExpressionError(f"{section} can stand only once in an UpdateExpression ({UPDATES})")
            seen.append(section)
            if section == "REMOVE":
                update.removes += self.listed(self.path)
            else:
                update.writes += self.listed(self._set if section == "SET" else self._add_or_delete)
        if not seen:
            self.refuse("SET, REMOVE, ADD or DELETE")
        return update

    def _set(self) -> tuple[Path, list[str]]:
        path = self.path()
        self.need("=")
        values = self._set_operand()
        if self.has("+", "-"):
            values = []  # a sum of numbers, whatever they are
            self._set_operand()
        return path, values

    def _set_operand(self) -> list[str]:
        kind, text = self.peek()
        if kind == "word" and text in ("if_not_exists", "list_append") and self.peek(1)[1] == "(":
            self._at += 2
            if text == "if_not_exists":
                self.path()
            else:
                self._set_operand()
            self.need(",")
            values = self._set_operand()
            self.need(")")
            return values if text == "if_not_exists" else []
        operand = self.operand()
        if operand.function:
            raise ExpressionError(f"{operand.function} cannot stand in SET ({UPDATES})")
        return [operand.value] if operand.value else []

    def _add_or_delete(self) -> tuple[Path, list[str]]:
        path = self.path()
        if self.peek()[0] != "value":
            self.refuse("a :value")
        return path, [self._placeholders.value(self.take())]


_FUNCTIONS = {"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, "begins_with": 2, "contains": 2}


def read_condition(text: str, placeholders: Placeholders) -> tuple[list[Comparison], list[str]]:
    """The comparisons of a condition or filter, and its AND, OR and NOT words. Raises ExpressionError."""
    reader = _Reader(text, placeholders)
    reader.condition()
    reader.end()
    return reader.comparisons, reader.words


def read_update(text: str, placeholders: Placeholders) -> Update:
    """Raises ExpressionError, also for two paths of which one lies within the other."""
    reader = _Reader(text, placeholders)
    update = reader.update()
    reader.end()
    paths = update.paths()
    for index, one in enumerate(paths):
        for other in paths[index + 1 :]:
            if one[: len(other)] == other[: len(one)]:
                raise ExpressionError(f"the paths {one} and {other} overlap ({UPDATES})")
    return update


def read_projection(text: str, placeholders: Placeholders) -> list[Path]:
    reader = _Reader(text, placeholders)
    paths: list[Path] = reader.listed(reader.path)
    reader.end()
    return paths


def read_key_condition(text: str, placeholders: Placeholders, partition: str, sort: str) -> None:
    """`#partition = :value`, and at most one condition on the sort key. Raises ExpressionError."""
    comparisons, words = read_condition(text, placeholders)
    if set(words) - {"AND"}:
        raise ExpressionError(f"a key condition knows only AND, not {sorted(set(words) - {'AND'})} ({QUERY})")
    found = {c.operands[0].path: c.operator for c in comparisons if all(o.value for o in c.operands[1:])}
    if len(found) < len(comparisons) or found.get((partition,)) != "=":
        raise ExpressionError(f"a key condition needs an equality of {partition} with a value ({QUERY})")
    others = {path: operator for path, operator in found.items() if path != (partition,)}
    allowed = {"=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"}
    if set(others) - {(sort,)} or set(others.values()) - allowed:
        raise ExpressionError(f"a key condition may add one comparison of {sort}, not {others} ({QUERY})")
