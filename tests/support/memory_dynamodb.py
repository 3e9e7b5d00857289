"""A DynamoDB table in this process's memory, behind a client's methods: as strict about races, 100 × as fast as moto.

It judges conditions, keeps the indexes (which may lag), pages and answers as DynamoDB does, for the requests that
Duetime makes and no others. It checks no limits: the observers of `calls` (aws_rules among them) see every call.
"""

import functools
import hashlib
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from shared.store import keys
from tests.support import calls, memory_expressions, partiql
from tests.support.memory_expressions import Item, added, compared, put_at, value_at
from tests.support.partiql import Condition, Insert, Path, Sum, Update

Key = tuple[str, str]
_INDEXES = {  # name → its partition key, its sort key, what it shows beside all keys
    keys.DUE_INDEX: (keys.DUE_KEY, keys.DUE_AT, keys.DUE_PROJECTION),
    keys.LIST_INDEX: (keys.LIST_KEY, keys.LIST_AT, ()),
}
PAGE_ITEMS = 300  # of a query or scan; DynamoDB cuts at 1 MB


def refused(code: str, operation: str, **more: Any) -> ClientError:
    """An error answer, as botocore raises it."""
    error: Any = {"Error": {"Code": code, "Message": f"{code} of the table in memory"}, **more}
    error["ResponseMetadata"] = {"HTTPStatusCode": 400, "HTTPHeaders": {}, "RetryAttempts": 0}
    return ClientError(error, operation)


class _Index:
    """One index: what it shows, by partition. It is sparse: only items that have both of its keys are in it."""

    def __init__(self, hash_name: str, range_name: str, others: tuple[str, ...]) -> None:
        self.hash_name, self.range_name = hash_name, range_name
        self._projected = (keys.PK, keys.SK, hash_name, range_name, *others)
        self._parts: dict[str, dict[Key, Item]] = {}
        self._shown: dict[Key, str] = {}  # key → the partition it is shown in

    def show(self, key: Key, item: Item | None) -> None:
        if key in self._shown:
            self._parts[self._shown.pop(key)].pop(key)
        if item is not None and self.hash_name in item and self.range_name in item:
            part = item[self.hash_name]["S"]
            self._parts.setdefault(part, {})[key] = {name: item[name] for name in self._projected if name in item}
            self._shown[key] = part

    def items(self, part: str | None) -> list[Item]:
        """What is shown in one partition, or in all, in order."""
        shown = (
            self._parts.get(part, {}).values()
            if part is not None
            else (item for members in self._parts.values() for item in members.values())
        )
        return sorted(shown, key=self.order)

    def order(self, item: Item) -> tuple[str, ...]:
        return item[self.range_name]["S"], item[keys.PK]["S"], item[keys.SK]["S"]


class MemoryTable:
    """Items by key, and what the indexes show of them. `written` is told (key, old item, new item) of every write."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.index_lag_s = 0.0
        self.written: Callable[[Key, Item | None, Item | None], None] = lambda key, old, new: None
        self._items: dict[str, dict[str, Item]] = {}
        self._indexes = {name: _Index(*shape) for name, shape in _INDEXES.items()}
        self._pending: list[tuple[datetime, Key, Item | None]] = []

    def get(self, key: Key) -> Item | None:
        return self._items.get(key[0], {}).get(key[1])

    def set(self, key: Key, item: Item | None) -> None:
        """Write `item`, or remove what is there."""
        old = self.get(key)
        if item is None:
            self._items.get(key[0], {}).pop(key[1], None)
        else:
            self._items.setdefault(key[0], {})[key[1]] = item
        if key[1] == keys.JOB or any(keys.LIST_KEY in one for one in (old, item) if one):
            shown_at = self.now() + timedelta(seconds=self.index_lag_s)
            before = [at for at, other, _ in self._pending if other == key]  # an index follows an item in order
            self._pending.append((max([shown_at, *before]), key, item))
        self.written(key, old, item)

    def partition(self, pk: str) -> list[Item]:
        """The items of one partition, in the order of their sort keys."""
        return [item for _, item in sorted(self._items.get(pk, {}).items())]

    def all(self) -> list[Item]:
        return [item for pk in sorted(self._items) for item in self.partition(pk)]

    def index(self, name: str) -> _Index:
        """An index as it is now."""
        now = self.now()
        later = [change for change in self._pending if change[0] > now]
        for at, key, item in self._pending:
            if at <= now:
                for index in self._indexes.values():
                    index.show(key, item)
        self._pending = later
        return self._indexes[name]

    def indexed(self) -> list[Item]:
        """What the index `due` shows now, by due time."""
        return self.index(keys.DUE_INDEX).items(None)


class MemoryDynamoDB:
    """The methods of a DynamoDB client that Duetime and its tests use, over one table."""

    def __init__(self, table: MemoryTable) -> None:
        self.table = table
        self._one_at_a_time = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        operation = "".join(part.title() for part in name.split("_"))
        run = getattr(MemoryDynamoDB, f"_{name}", None)
        if run is None:
            raise AttributeError(f"the table in memory does not know {operation}")
        made = functools.partial(calls.through, "dynamodb", operation, functools.partial(self._run, run))
        setattr(self, name, made)  # the next look-up is an ordinary one
        return made

    def _run(self, run: Callable[["MemoryDynamoDB", Item], Item], params: Item) -> Item:
        with self._one_at_a_time:
            return run(self, params)

    def get_paginator(self, name: str) -> Any:
        if name != "scan":
            raise AttributeError(f"the table in memory pages only scans, not {name}")
        return _Scans(self)

    def _get_item(self, params: Item) -> Item:
        item = self.table.get(_key(params["Key"]))
        return {"Item": dict(item)} if item else {}

    def _batch_get_item(self, params: Item) -> Item:
        ((name, request),) = params["RequestItems"].items()
        found = [self.table.get(_key(key)) for key in request["Keys"]]
        return {"Responses": {name: [dict(item) for item in found if item]}, "UnprocessedKeys": {}}

    def _put_item(self, params: Item) -> Item:
        key = _key(params["Item"])
        self._judge("PutItem", key, params)
        self.table.set(key, dict(params["Item"]))
        return {}

    def _batch_write_item(self, params: Item) -> Item:
        (requests,) = params["RequestItems"].values()
        for request in requests:
            item = request["PutRequest"]["Item"]
            self.table.set(_key(item), dict(item))
        return {"UnprocessedItems": {}}

    def _delete_item(self, params: Item) -> Item:
        key = _key(params["Key"])
        self._judge("DeleteItem", key, params)
        if self.table.get(key) is not None:
            self.table.set(key, None)
        return {}

    def _update_item(self, params: Item) -> Item:
        key = _key(params["Key"])
        old = self._judge("UpdateItem", key, params)
        new = dict(old) if old else dict(params["Key"])
        names, values = params.get("ExpressionAttributeNames", {}), params.get("ExpressionAttributeValues", {})
        try:
            for change in memory_expressions.update(params["UpdateExpression"]):
                change(new, old or {}, names, values)
        except (KeyError, IndexError) as error:
            raise refused("ValidationException", "UpdateItem") from error
        self.table.set(key, new)
        return {"Attributes": dict(new)} if params.get("ReturnValues") == "ALL_NEW" else {}

    def _query(self, params: Item) -> Item:
        names, values = params["ExpressionAttributeNames"], params["ExpressionAttributeValues"]
        holds = memory_expressions.condition(params["KeyConditionExpression"])
        index = self.table.index(params["IndexName"]) if "IndexName" in params else None
        # Every key condition of Duetime begins with the equality of the partition key.
        first, placeholder = params["KeyConditionExpression"].split(" = ", 1)
        if names[first] != (index.hash_name if index else keys.PK):
            raise refused("ValidationException", "Query")
        wanted = values[placeholder.split(" ", 1)[0]]["S"]
        there = index.items(wanted) if index else self.table.partition(wanted)
        found = [item for item in there if holds(item, names, values)]
        order = index.order if index else _in_table
        key_names = (keys.PK, keys.SK, index.hash_name, index.range_name) if index else (keys.PK, keys.SK)
        if not params.get("ScanIndexForward", True):
            found.reverse()
            return _page(found, params, key_names, lambda item, start: order(item) < order(start))
        return _page(found, params, key_names, lambda item, start: order(item) > order(start))

    def _scan(self, params: Item) -> Item:
        segments, segment = params.get("TotalSegments", 1), params.get("Segment", 0)
        there = [item for item in self.table.all() if sum(item[keys.PK]["S"].encode()) % segments == segment]
        there.sort(key=_in_scan)
        return _page(there, params, (keys.PK, keys.SK), lambda item, start: _in_scan(item) > _in_scan(start))

    def _batch_execute_statement(self, params: Item) -> Item:
        return {"Responses": [self._statement(one) for one in params["Statements"]]}

    def _insert(self, statement: Item) -> Item:
        insert, parameters = _read_insert(statement["Statement"]), statement["Parameters"]
        item = {name: _bound(value, parameters) for name, value in insert.item.items()}
        if self.table.get(_key(item)) is not None:
            return {"Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}}
        self.table.set(_key(item), item)
        return {"TableName": insert.table}

    def _statement(self, statement: Item) -> Item:
        if partiql.is_insert(statement["Statement"]):
            return self._insert(statement)
        update, parameters = _read(statement["Statement"]), statement["Parameters"]
        bound = {c.path.name: _bound(c.right, parameters) for c in update.where if c.operator == "="}
        key = (bound[keys.PK]["S"], bound[keys.SK]["S"])
        old = self.table.get(key)
        if old is None or not all(_holds(old, condition, parameters) for condition in update.where):
            error: Item = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            if old is not None and statement.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD":
                error["Item"] = dict(old)
            return {"Error": error}
        new = dict(old)
        for path, value in update.sets:
            put_at(new, path.parts, _value(old, value, parameters))
        for path in update.removes:
            new.pop(path.name, None)
        self.table.set(key, new)
        return {"TableName": update.table}

    def _judge(self, operation: str, key: Key, params: Item) -> Item | None:
        """What is there now; raises unless the condition holds."""
        old = self.table.get(key)
        text = params.get("ConditionExpression")
        if text is not None:
            holds = memory_expressions.condition(text)
            names, values = params.get("ExpressionAttributeNames", {}), params.get("ExpressionAttributeValues", {})
            if not holds(old or {}, names, values):
                more = {"Item": dict(old)} if old and "ReturnValuesOnConditionCheckFailure" in params else {}
                raise refused("ConditionalCheckFailedException", operation, **more)
        return old


class _Scans:
    def __init__(self, client: MemoryDynamoDB) -> None:
        self._client = client

    def paginate(self, **params: Any) -> Iterator[Item]:
        start: Item = {}
        while True:
            page = self._client.scan(**params, **start)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _key(item: Item) -> Key:
    return item[keys.PK]["S"], item[keys.SK]["S"]


def _in_scan(item: Item) -> tuple[bytes, str, str]:
    """A scan goes by a hash of the partition key, as DynamoDB's does: an order that means nothing and stays."""
    pk, sk = _key(item)
    return hashlib.md5(pk.encode(), usedforsecurity=False).digest(), pk, sk


def _in_table(item: Item) -> tuple[str, ...]:
    return (item[keys.SK]["S"],)


def _page(
    found: list[Item], params: Item, key_names: tuple[str, ...], comes_after: Callable[[Item, Item], bool]
) -> Item:
    """One page from ExclusiveStartKey on; a filter is judged after the page is cut, as DynamoDB does."""
    start = params.get("ExclusiveStartKey")
    there = found if start is None else [item for item in found if comes_after(item, start)]
    size = params.get("Limit", PAGE_ITEMS)
    page = there[:size]
    answer: Item = {}
    if len(there) > size or ("Limit" in params and len(page) == size):
        last = page[-1]
        answer["LastEvaluatedKey"] = {name: last[name] for name in key_names}
    if "FilterExpression" in params:
        passes = memory_expressions.condition(params["FilterExpression"])
        names, values = params["ExpressionAttributeNames"], params["ExpressionAttributeValues"]
        page = [item for item in page if passes(item, names, values)]
    answer["Items"] = [dict(item) for item in page]
    return answer


@functools.cache
def _read(statement: str) -> Update:
    """A statement with its parameters' places (`{"?": n}`) in place of their values."""
    return partiql.read_update(statement, [{"?": place} for place in range(statement.count("?"))])


@functools.cache
def _read_insert(statement: str) -> Insert:
    return partiql.read_insert(statement, [{"?": place} for place in range(statement.count("?"))])


def _bound(operand: Any, parameters: list[Item]) -> Item:
    return parameters[operand["?"]] if "?" in operand else operand  # type: ignore[no-any-return]


def _operand(item: Item, operand: Any, parameters: list[Item]) -> Item | None:
    return value_at(item, operand.parts) if isinstance(operand, Path) else _bound(operand, parameters)


def _value(item: Item, value: Any, parameters: list[Item]) -> Item:
    if isinstance(value, Sum):
        left, right = _operand(item, value.left, parameters), _operand(item, value.right, parameters)
        return added(left, value.operator, right)
    return _operand(item, value, parameters) or {}


def _holds(item: Item, condition: Condition, parameters: list[Item]) -> bool:
    found = value_at(item, condition.path.parts)
    if condition.operator in ("exists", "missing"):
        return (found is not None) == (condition.operator == "exists")
    return compared(found, condition.operator, _operand(item, condition.right, parameters))
