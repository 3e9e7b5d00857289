"""AWS's limits on PartiQL statements. It only says what is wrong; aws_rules raises it."""

import re
from collections.abc import Iterator
from typing import Any

from tests.support.aws_rules_items import (
    KEY_BYTES,
    attribute_problems,
    item_problems,
    key_problems,
    same_item,
    value_problems,
)
from tests.support.partiql import PartiqlError, read_insert, read_update

_API = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
BATCH = _API + "API_BatchExecuteStatement.html"  # 1 to 25 statements
STATEMENT = _API + "API_BatchStatementRequest.html"  # 1 to 8,192 characters; parameters, if any, at least one
MIXING = _GUIDE + "ql-reference.multiplestatements.batching.html"  # reads and writes don't mix
QUOTES = _GUIDE + "ql-reference.html"  # names in double quotes: many are reserved words
INSERT = _GUIDE + "ql-reference.insert.html"  # one item, as a tuple of names in single quotes
UPDATE = _GUIDE + "ql-reference.update.html"  # the WHERE names one item by its whole key

MAX_STATEMENTS = 25
MAX_CHARACTERS = 8192
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_]\w*|\?|.""", re.DOTALL)
_KEYWORD = re.compile(
    "SELECT|FROM|WHERE|AND|OR|NOT|IN|IS|BETWEEN|INSERT|INTO|VALUE|UPDATE|SET|REMOVE|DELETE|RETURNING|ALL|OLD|NEW|MODIFIED"
    "|NULL|MISSING|TRUE|FALSE|ORDER|BY|ASC|DESC|ATTRIBUTE_EXISTS|ATTRIBUTE_NOT_EXISTS|BEGINS_WITH|CONTAINS|SIZE",
    re.IGNORECASE,
)


def batch_problems(params: dict[str, Any]) -> Iterator[str]:
    statements = params["Statements"]
    if not 1 <= len(statements) <= MAX_STATEMENTS:
        yield f"a batch has 1 to {MAX_STATEMENTS} statements, not {len(statements)} ({BATCH})"
    verbs = {statement["Statement"].lstrip()[:6].upper() for statement in statements}
    if "SELECT" in verbs and len(verbs) > 1:
        yield f"a batch holds either reads or writes, not both ({MIXING})"
    items: set[tuple[str, ...]] = set()
    for index, statement in enumerate(statements):
        where = f"statement {index}: "
        key: dict[str, Any] = {}
        for problem in statement_problems(statement, key):
            yield where + problem
        if key and same_item(key) in items:
            yield f"{where}a batch has at most one statement for an item, and {key} comes twice ({BATCH})"
        items.add(same_item(key))


def statement_problems(statement: dict[str, Any], key: dict[str, Any]) -> Iterator[str]:
    """One statement. `key` is filled with the key of the item that an UPDATE or INSERT names."""
    text, given = statement["Statement"], statement.get("Parameters")
    parameters: list[Any] = given or []
    if not 1 <= len(text) <= MAX_CHARACTERS:
        yield f"a statement has 1 to {MAX_CHARACTERS} characters, not {len(text)} ({STATEMENT})"
    if given is not None and not given:
        yield f"Parameters must be left out or have at least one ({STATEMENT})"
    tokens = _TOKEN.findall(text)
    for word in [t for t in tokens if re.match(r"[A-Za-z_]", t) and not _KEYWORD.fullmatch(t)]:
        yield f"the bare word {word!r}: every name stands in double quotes ({QUOTES})"
    if tokens.count("?") != len(parameters):
        yield f"has {tokens.count('?')} question marks and {len(parameters)} parameters ({STATEMENT})"
        return
    for number, parameter in enumerate(parameters, 1):
        yield from value_problems(parameter, f"parameter {number}")
    if tokens[:1] and tokens[0].upper() == "UPDATE":
        yield from _update_problems(text, parameters, key)
    elif tokens[:1] and tokens[0].upper() == "INSERT":
        yield from _insert_problems(text, parameters, key)


def _insert_problems(text: str, parameters: list[Any], key: dict[str, Any]) -> Iterator[str]:
    try:
        insert = read_insert(text, parameters)
    except PartiqlError as error:
        yield f"{error} ({INSERT})"
        return
    key |= {name: insert.item[name] for name in KEY_BYTES if name in insert.item}
    yield from item_problems(insert.item)


def _update_problems(text: str, parameters: list[Any], key: dict[str, Any]) -> Iterator[str]:
    try:
        update = read_update(text, parameters)
    except PartiqlError as error:
        yield f"{error} ({UPDATE})"
        return
    for condition in update.where:
        if condition.operator == "=" and condition.path.name in KEY_BYTES and isinstance(condition.right, dict):
            key[condition.path.name] = condition.right
    yield from key_problems(key)
    written = [path for path, _ in update.sets] + update.removes
    for path in written:
        if path.name in KEY_BYTES:
            yield f"{path.name} is part of the key and cannot be changed ({UPDATE})"
        if written.count(path) > 1:
            yield f"{path.name} is written twice in one statement ({UPDATE})"
    for path, value in update.sets:
        if len(path.parts) == 1 and isinstance(value, dict):
            yield from attribute_problems(path.name, value)
