"""Reads the PartiQL UPDATE and INSERT statements that Duetime sends. It never runs one, and knows no other kind.

Grammar read: UPDATE "table" (SET path = value[, …] | REMOVE path[, …])+ WHERE condition [AND condition …]
with value = operand [+|- operand], condition = path op operand | path IS [NOT] MISSING | attribute_[not_]exists(path),
operand = ? | 'text' | number | TRUE | FALSE | path. Names stand in double quotes.
And: INSERT INTO "table" VALUE {'name': operand[, …]}, where no operand is a path.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html
"""

import re
from dataclasses import dataclass, field
from typing import Any

Value = dict[str, Any]
_TOKEN = re.compile(
    r"""\s*(?: (?P<name>"(?:[^"]|"")+") | (?P<text>'(?:[^']|'')*') | (?P<number>\d+(?:\.\d+)?)
    | (?P<operator><=|>=|<>|!=|[=<>+\-(),.?:{}\[\]]) | (?P<word>[A-Za-z_]\w*) )""",
    re.VERBOSE,
)
_COMPARATORS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class PartiqlError(ValueError):
    """The statement cannot be read; the message says where."""


@dataclass(frozen=True)
class Path:
    """A quoted name, with members after it: `"a"."b"[0]` is ("a", "b", 0)."""

    parts: tuple[str | int, ...]

    @property
    def name(self) -> str:
        return str(self.parts[0])


@dataclass(frozen=True)
class Sum:
    left: "Path | Value"
    operator: str
    right: "Path | Value"


@dataclass(frozen=True)
class Condition:
    """`operator` is a comparator, `exists` or `missing`; the last two have no right side."""

    path: Path
    operator: str
    right: Path | Value | None = None


@dataclass(frozen=True)
class Update:
    table: str
    sets: list[tuple[Path, Path | Value | Sum]]
    removes: list[Path]
    where: list[Condition]


@dataclass(frozen=True)
class Insert:
    table: str
    item: dict[str, Value]


@dataclass
class _Reader:
    statement: str
    parameters: list[Value]
    tokens: list[tuple[str, str]] = field(default_factory=list)
    used: int = 0

    def __post_init__(self) -> None:
        position = 0
        text = self.statement.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise PartiqlError(f"cannot be read at {text[position : position + 20]!r}")
            self.tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            position = match.end()
        self.tokens.reverse()

    def peek(self) -> tuple[str, str]:
        return self.tokens[-1] if self.tokens else ("end", "")

    def word(self, *words: str) -> str | None:
        kind, text = self.peek()
        if kind in ("word", "operator") and text.upper() in words:
            self.tokens.pop()
            return text.upper()
        return None

    def need(self, *words: str) -> str:
        found = self.word(*words)
        if found is None:
            raise PartiqlError(f"expected {' or '.join(words)}, found {self.peek()[1]!r}")
        return found

    def name(self) -> str:
        kind, text = self.peek()
        if kind != "name":
            raise PartiqlError(f"expected a name in double quotes, found {text!r}")
        self.tokens.pop()
        return text[1:-1].replace('""', '"')

    def path(self) -> Path:
        parts: list[str | int] = [self.name()]
        while True:
            if self.word("."):
                parts.append(self.name())
            elif self.word("["):
                parts.append(int(self.tokens.pop()[1]))
                self.need("]")
            else:
                return Path(tuple(parts))

    def operand(self) -> Path | Value:
        kind, text = self.peek()
        if kind == "name":
            return self.path()
        if self.word("?"):
            if self.used == len(self.parameters):
                raise PartiqlError("has more question marks than parameters")
            self.used += 1
            return self.parameters[self.used - 1]
        if kind == "text":
            self.tokens.pop()
            return {"S": text[1:-1].replace("''", "'")}
        sign = "-" if self.word("-") else ""
        if self.peek()[0] == "number":
            return {"N": sign + self.tokens.pop()[1]}
        word = self.need("TRUE", "FALSE")
        return {"BOOL": word == "TRUE"}

    def value(self) -> Path | Value | Sum:
        left = self.operand()
        sign = self.word("+", "-")
        return Sum(left, sign, self.operand()) if sign else left

    def condition(self) -> Condition:
        function = self.word("ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS")
        if function:
            self.need("(")
            path = self.path()
            self.need(")")
            return Condition(path, "exists" if function == "ATTRIBUTE_EXISTS" else "missing")
        path = self.path()
        if self.word("IS"):
            absent = not self.word("NOT")
            self.need("MISSING")
            return Condition(path, "missing" if absent else "exists")
        return Condition(path, _COMPARATORS[self.need(*_COMPARATORS)], self.operand())

    def update(self) -> Update:
        self.need("UPDATE")
        update = Update(self.name(), [], [], [])
        while clause := self.word("SET", "REMOVE"):
            while True:
                path = self.path()
                if clause == "SET":
                    self.need("=")
                    update.sets.append((path, self.value()))
                else:
                    update.removes.append(path)
                if not self.word(","):
                    break
        if not update.sets and not update.removes:
            raise PartiqlError("has neither SET nor REMOVE")
        self.need("WHERE")
        update.where.append(self.condition())
        while self.word("AND"):
            update.where.append(self.condition())
        self.end()
        return update

    def insert(self) -> Insert:
        self.need("INSERT")
        self.need("INTO")
        insert = Insert(self.name(), {})
        self.need("VALUE")
        self.need("{")
        while True:
            kind, text = self.peek()
            if kind != "text":
                raise PartiqlError(f"expected a name in single quotes, found {text!r}")
            self.tokens.pop()
            self.need(":")
            value = self.operand()
            if isinstance(value, Path):
                raise PartiqlError(f"{value.name!r} is no value")
            insert.item[text[1:-1].replace("''", "'")] = value
            if not self.word(","):
                break
        self.need("}")
        self.end()
        return insert

    def end(self) -> None:
        if self.tokens:
            raise PartiqlError(f"goes on with {self.peek()[1]!r}")
        if self.used != len(self.parameters):
            raise PartiqlError(f"has {self.used} question marks and {len(self.parameters)} parameters")


def is_update(statement: str) -> bool:
    return statement.lstrip()[:6].upper() == "UPDATE"


def is_insert(statement: str) -> bool:
    return statement.lstrip()[:6].upper() == "INSERT"


def read_insert(statement: str, parameters: list[Value]) -> Insert:
    """Raises PartiqlError for what is not such an INSERT, or has the wrong number of parameters."""
    return _Reader(statement, parameters).insert()


def read_update(statement: str, parameters: list[Value]) -> Update:
    """Raises PartiqlError for what is not such an UPDATE, or has the wrong number of parameters."""
    return _Reader(statement, parameters).update()
