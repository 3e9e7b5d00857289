"""AWS's limits on requests to DynamoDB. It only says what is wrong; aws_rules raises it."""

import re
from collections.abc import Iterator
from typing import Any

from shared.store import keys
from tests.support import aws_rules_expressions as expressions
from tests.support import aws_rules_partiql as partiql
from tests.support.aws_rules_expressions import ExpressionError, Placeholders
from tests.support.aws_rules_items import (
    INDEXES,
    KEY_BYTES,
    attribute_problems,
    item_bytes,
    item_problems,
    key_problems,
    same_item,
    value_problems,
)

_API = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_GUIDE = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
BATCH_WRITE = _API + "API_BatchWriteItem.html"  # 25 requests, one an item, 16 MB
BATCH_GET = _API + "API_BatchGetItem.html"  # 100 keys, each once
TRANSACT = _API + "API_TransactWriteItems.html"  # 100 actions, one an item, 4 MB
QUERY = _API + "API_Query.html"
SCAN = _API + "API_Scan.html"
UPDATE = _API + "API_UpdateItem.html"
PUT = _API + "API_PutItem.html"
INDEX = _GUIDE + "GSI.html"  # reads of a global index are eventually consistent, and see only what it projects
NAMES = expressions.NAMES

MAX_BATCH_WRITE = 25
MAX_BATCH_WRITE_BYTES = 16 * 1024 * 1024
MAX_BATCH_GET = 100
MAX_TRANSACT = 100
MAX_TRANSACT_BYTES = 4 * 1024 * 1024
MAX_SEGMENTS = 1_000_000
_SINGLE = ("PutItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Scan")


def problems(operation: str, params: dict[str, Any]) -> Iterator[str]:
    if operation in _SINGLE:
        yield from _request(operation, params)
    elif operation == "BatchWriteItem":
        yield from _batch_write(params)
    elif operation == "BatchGetItem":
        yield from _batch_get(params)
    elif operation in ("TransactWriteItems", "TransactGetItems"):
        yield from _transact(params)
    elif operation == "BatchExecuteStatement":
        yield from partiql.batch_problems(params)
    elif operation == "ExecuteStatement":
        yield from partiql.statement_problems(params, {})


def _request(operation: str, params: dict[str, Any]) -> Iterator[str]:
    """A request of one item or one read, on its own or within a transaction."""
    if "Key" in params:
        yield from key_problems(params["Key"])
    if "Item" in params:
        yield from item_problems(params["Item"])
    if params.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD") and operation in ("PutItem", "DeleteItem"):
        yield f"ReturnValues of {operation} is NONE or ALL_OLD, not {params['ReturnValues']} ({PUT})"
    if operation in ("Query", "Scan"):
        yield from _read(operation, params)
    yield from _expressions(operation, params)


def _read(operation: str, params: dict[str, Any]) -> Iterator[str]:
    index = params.get("IndexName")
    on_index = index is not None
    if on_index and index not in INDEXES:
        yield f"there is no index {index} ({INDEX})"
        return
    if on_index and params.get("ConsistentRead"):
        yield f"a global index cannot be read with ConsistentRead ({INDEX})"
    if on_index and params.get("Select") == "ALL_ATTRIBUTES":
        yield f"index {params['IndexName']} does not project all attributes ({INDEX})"
    if "Limit" in params and (type(params["Limit"]) is not int or params["Limit"] < 1):
        yield f"Limit is a whole number from 1 on, not {params['Limit']!r} ({QUERY})"
    if operation == "Query" and "KeyConditionExpression" not in params:
        yield f"Query needs a KeyConditionExpression ({QUERY})"
    start = params.get("ExclusiveStartKey")
    wanted = set(KEY_BYTES) | (set(INDEXES[index][:2]) if index else set())
    if start is not None and set(start) != wanted:
        yield f"ExclusiveStartKey holds exactly {sorted(wanted)}, not {sorted(start)} ({QUERY})"
    if operation == "Scan":
        yield from _segments(params)


def _segments(params: dict[str, Any]) -> Iterator[str]:
    segment, total = params.get("Segment"), params.get("TotalSegments")
    if (segment is None) != (total is None):
        yield f"Segment and TotalSegments come together ({SCAN})"
    elif segment is not None and total is not None and not 0 <= segment < total <= MAX_SEGMENTS:
        yield f"Segment is 0 to TotalSegments − 1 (of {MAX_SEGMENTS} at most), not {segment} of {total} ({SCAN})"


def _expressions(operation: str, params: dict[str, Any]) -> Iterator[str]:
    names, values = params.get("ExpressionAttributeNames"), params.get("ExpressionAttributeValues")
    for label, given, sign in (("Names", names, "#"), ("Values", values, ":")):
        if given is not None and not given:
            yield f"ExpressionAttribute{label} must be left out or have at least one ({NAMES})"
        for placeholder in [p for p in given or {} if not re.fullmatch(rf"{sign}\w+", p, re.ASCII)]:
            yield f"{placeholder!r} in ExpressionAttribute{label} must be {sign} and letters or digits ({NAMES})"
    for placeholder, value in (values or {}).items():
        yield from value_problems(value, placeholder)
    placeholders = Placeholders(names or {}, values or {})
    broken = False
    for name, rule in _RULES.items():
        if name not in params:
            continue
        try:
            yield from rule(operation, params, params[name], placeholders)
        except ExpressionError as error:
            broken = True
            yield f"{name} {params[name]!r}: {error}"
    unused = sorted({*(names or {}), *(values or {})} - placeholders.used)
    if unused and not broken:
        yield f"{', '.join(unused)}: used in no expression ({NAMES})"


def _update_expression(_: str, __: dict[str, Any], text: str, placeholders: Placeholders) -> Iterator[str]:
    update = expressions.read_update(text, placeholders)
    for path in update.paths():
        if path[0] in KEY_BYTES:
            yield f"{path[0]} is part of the key and cannot be changed ({UPDATE})"
    for path, written in update.writes:
        for placeholder in written if len(path) == 1 else []:
            yield from attribute_problems(str(path[0]), placeholders.values[placeholder])


def _condition(_: str, __: dict[str, Any], text: str, placeholders: Placeholders) -> Iterator[str]:
    expressions.read_condition(text, placeholders)
    return iter(())


def _filter(operation: str, params: dict[str, Any], text: str, placeholders: Placeholders) -> Iterator[str]:
    comparisons, _ = expressions.read_condition(text, placeholders)
    if operation == "Query":
        own = INDEXES[params["IndexName"]][:2] if "IndexName" in params else KEY_BYTES
        named = {operand.path[0] for c in comparisons for operand in c.operands if operand.path}
        for name in sorted(set(own) & {str(n) for n in named}):
            yield f"FilterExpression cannot name the key attribute {name} ({QUERY})"


def _key_condition(_: str, params: dict[str, Any], text: str, placeholders: Placeholders) -> Iterator[str]:
    partition, sort = INDEXES[params["IndexName"]][:2] if "IndexName" in params else (keys.PK, keys.SK)
    expressions.read_key_condition(text, placeholders, partition, sort)
    return iter(())


def _projection(_: str, params: dict[str, Any], text: str, placeholders: Placeholders) -> Iterator[str]:
    paths = expressions.read_projection(text, placeholders)
    if "IndexName" in params:
        hash_key, sort_key, others = INDEXES[params["IndexName"]]
        for name in sorted({str(path[0]) for path in paths} - {*KEY_BYTES, hash_key, sort_key, *others}):
            yield f"index {params['IndexName']} does not project {name} ({INDEX})"


_RULES = {
    "ConditionExpression": _condition,
    "UpdateExpression": _update_expression,
    "FilterExpression": _filter,
    "KeyConditionExpression": _key_condition,
    "ProjectionExpression": _projection,
}


def _once_each(found: list[dict[str, Any]], what: str, page: str) -> Iterator[str]:
    seen: set[tuple[str, ...]] = set()
    for key in found:
        if same_item(key) in seen:
            yield f"{what} names an item at most once, and {same_item(key)} comes twice ({page})"
        seen.add(same_item(key))


def _batch_write(params: dict[str, Any]) -> Iterator[str]:
    requests = [request for table in params["RequestItems"].values() for request in table]
    if not 1 <= len(requests) <= MAX_BATCH_WRITE:
        yield f"BatchWriteItem has 1 to {MAX_BATCH_WRITE} requests, not {len(requests)} ({BATCH_WRITE})"
    total = 0
    for request in requests:
        if "PutRequest" in request:
            yield from item_problems(request["PutRequest"]["Item"])
            total += item_bytes(request["PutRequest"]["Item"])
        else:
            yield from key_problems(request["DeleteRequest"]["Key"])
    if total > MAX_BATCH_WRITE_BYTES:
        yield f"BatchWriteItem takes at most {MAX_BATCH_WRITE_BYTES} bytes, not {total} ({BATCH_WRITE})"
    for table in params["RequestItems"].values():
        found = [r["PutRequest"]["Item"] if "PutRequest" in r else r["DeleteRequest"]["Key"] for r in table]
        yield from _once_each(found, "BatchWriteItem", BATCH_WRITE)


def _batch_get(params: dict[str, Any]) -> Iterator[str]:
    total = sum(len(request["Keys"]) for request in params["RequestItems"].values())
    if not 1 <= total <= MAX_BATCH_GET:
        yield f"BatchGetItem has 1 to {MAX_BATCH_GET} keys, not {total} ({BATCH_GET})"
    for request in params["RequestItems"].values():
        for key in request["Keys"]:
            yield from key_problems(key)
        yield from _once_each(request["Keys"], "BatchGetItem", BATCH_GET)
        yield from _expressions("BatchGetItem", request)


def _transact(params: dict[str, Any]) -> Iterator[str]:
    actions = [next(iter(action.items())) for action in params["TransactItems"]]
    if not 1 <= len(actions) <= MAX_TRANSACT:
        yield f"a transaction has 1 to {MAX_TRANSACT} actions, not {len(actions)} ({TRANSACT})"
    for kind, action in actions:
        yield from _request(f"{kind}Item", action)
    targets = [action.get("Key") or action["Item"] for _, action in actions]
    yield from _once_each(targets, "a transaction", TRANSACT)
    total = sum(item_bytes(action["Item"]) for _, action in actions if "Item" in action)
    if total > MAX_TRANSACT_BYTES:
        yield f"a transaction takes at most {MAX_TRANSACT_BYTES} bytes, not {total} ({TRANSACT})"
    token = params.get("ClientRequestToken", "x")
    if not 1 <= len(token) <= 36:
        yield f"ClientRequestToken has 1 to 36 characters, not {len(token)} ({TRANSACT})"
