"""The one table, as calls with named clauses. It knows no item's meaning (codec does) and decides nothing.

Every attribute name in an expression is written `#name` and every value `:value`; the name placeholders are collected
here, so that a reserved word (status, ttl …) can never stand bare.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]  # attribute name → DynamoDB value, as the low-level client has it
_NAME = re.compile(r"#(\w+)")


class ConditionFailedError(Exception):
    """A conditional write found another state than the one it expects; `item` is what is there (None: nothing)."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition does not hold")
        self.item = item


class NotWrittenError(Exception):
    """What was to be changed is not as it was seen.

    `sure`: nothing was written. Else a first try of the same request may have been, with its answer lost.
    """

    sure = True


def text(value: str) -> dict[str, str]:
    """A string value."""
    return {"S": value}


def number(value: float) -> dict[str, str]:
    """A number value."""
    return {"N": repr(value)}


class Table:
    """Reads and writes of table `name` through a low-level client. All reads are consistent, but an index's.

    `pause(seconds)` is called before keys that a batch read left out are asked for again.
    """

    def __init__(self, client: "DynamoDBClient", name: str, pause: Callable[[float], None] = time.sleep) -> None:
        self.client = client
        self.name = name
        self.pause = pause

    def get(self, key: Item) -> Item | None:
        return self.client.get_item(TableName=self.name, Key=key, ConsistentRead=True).get("Item")

    def get_some(self, keys: Sequence[Item]) -> list[Item]:
        """Of at most 100 different `keys`, the items that one request gives, in no order: not all that are there."""
        request: Any = {self.name: {"Keys": keys, "ConsistentRead": True}}
        answer: Item = dict(self.client.batch_get_item(RequestItems=request))
        found: list[Item] = answer["Responses"].get(self.name, [])
        return found

    def get_many(self, keys: Sequence[Item]) -> list[Item]:
        """The items of `keys` that are there, in no order; 100 a request, unprocessed keys asked again."""
        found: list[Item] = []
        for start in range(0, len(keys), 100):
            wanted: list[Item] = list(keys[start : start + 100])
            for again in count():
                if not wanted:
                    break
                if again:  # throttled in part: AWS asks for a growing pause
                    self.pause(min(0.05 * 2**again, 2.0))
                request: Any = {self.name: {"Keys": wanted, "ConsistentRead": True}}
                answer: Item = dict(self.client.batch_get_item(RequestItems=request))
                found += answer["Responses"].get(self.name, [])
                wanted = answer.get("UnprocessedKeys", {}).get(self.name, {}).get("Keys", [])
        return found

    def put(self, item: Item, condition: str | None = None, values: Mapping[str, Any] | None = None) -> None:
        """Write a whole item. Raises ConditionFailedError."""
        self._write(self.client.put_item, {"Item": item}, condition, "", values)

    def put_many(self, items: Sequence[Item]) -> None:
        """Write whole items of different keys, whatever is there; 25 a request, unprocessed ones are sent again."""
        for start in range(0, len(items), 25):
            left: list[Any] = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
            for again in count():
                if not left:
                    break
                if again:  # throttled in part: AWS asks for a growing pause
                    self.pause(min(0.05 * 2**again, 2.0))
                answer: Item = dict(self.client.batch_write_item(RequestItems={self.name: left}))
                left = answer.get("UnprocessedItems", {}).get(self.name, [])

    def update(
        self,
        key: Item,
        update: str,
        condition: str | None,
        values: Mapping[str, Any],
        *,
        returned: str = "NONE",
        names: Mapping[str, str] | None = None,
    ) -> Item:
        """Change an item under a condition; `returned` is ALL_NEW or NONE. Raises ConditionFailedError.

        `names`: what `#name` stands for where that is not itself, such as the name of an entry in a map.
        """
        call: Item = {"Key": key, "UpdateExpression": update, "ReturnValues": returned}
        call |= {"ExpressionAttributeNames": dict(names)} if names else {}
        answer: Item = self._write(self.client.update_item, call, condition, update, values).get("Attributes", {})
        return answer

    def delete(self, key: Item, condition: str | None = None, values: Mapping[str, Any] | None = None) -> None:
        """Remove an item, if it is there. Raises ConditionFailedError."""
        self._write(self.client.delete_item, {"Key": key}, condition, "", values)

    def query(
        self,
        condition: str,
        values: Mapping[str, Any],
        *,
        index: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        start: Item | None = None,
        only: str | None = None,
    ) -> Iterator[tuple[list[Item], Item | None]]:
        """Pages of items with the key to go on from, to the end, through empty pages too. `only` is a filter."""
        call: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": _names(condition, only or ""),
            "ExpressionAttributeValues": dict(values),
            "ScanIndexForward": not newest_first,
        }
        call |= {"IndexName": index} if index else {"ConsistentRead": True}
        call |= {"FilterExpression": only} if only else {}
        call |= {"Limit": limit} if limit else {}
        return self._pages(self.client.query, call, start)

    def scan(self, segment: int, segments: int) -> Iterator[list[Item]]:
        """Pages of all items of one of `segments` parts of the table, to the end."""
        call = {"TableName": self.name, "Segment": segment, "TotalSegments": segments, "ConsistentRead": True}
        return (items for items, _ in self._pages(self.client.scan, call, None))

    def scan_some(
        self, limit: int, start: Item | None, only: str, values: Mapping[str, Any]
    ) -> tuple[list[Item], Item | None]:
        """Those of at most `limit` items from `start` on that pass the filter `only`, and the key to go on from."""
        call: dict[str, Any] = {
            "TableName": self.name,
            "Limit": limit,
            "ConsistentRead": True,
            "FilterExpression": only,
            "ExpressionAttributeNames": _names(only),
            "ExpressionAttributeValues": dict(values),
        }
        return next(self._pages(self.client.scan, call, start))

    def _pages(
        self, operation: Callable[..., Any], call: Item, start: Item | None
    ) -> Iterator[tuple[list[Item], Item | None]]:
        while True:
            answer = operation(**call, **({"ExclusiveStartKey": start} if start else {}))
            start = answer.get("LastEvaluatedKey")
            yield answer["Items"], start
            if not start:
                return

    def _write(
        self,
        operation: Callable[..., Any],
        call: Item,
        condition: str | None,
        update: str,
        values: Mapping[str, Any] | None,
    ) -> Item:
        call = {"TableName": self.name, **call}
        if condition:
            call |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if names := _names(update, condition or "") | call.get("ExpressionAttributeNames", {}):
            call["ExpressionAttributeNames"] = names
        if values:
            call["ExpressionAttributeValues"] = dict(values)
        try:
            answer: Item = operation(**call)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
                there: Any = error.response.get("Item")
                raise ConditionFailedError(there) from None
            raise
        return answer


def _names(*expressions: str) -> dict[str, str]:
    return {f"#{name}": name for expression in expressions for name in _NAME.findall(expression)}
