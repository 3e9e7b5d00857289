"""Counts what requests cost: how many, write and read units by DynamoDB's rules, dollars. It changes no answer.

Units of a write are what the local AWS says it consumed, table and index; for PartiQL statements, where it says 1
whatever they do to an index, that is added here: 1 to put a job into it or take it out, 2 to move it. Units of a read
are counted from the bytes read. Both by "Capacity unit consumption" and "Using Global Secondary Indexes" of the
DynamoDB guide. A condition that does not hold is paid like the write.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from botocore.exceptions import ClientError

from shared.store import keys
from tests.support.aws import Aws
from tests.support.aws_rules_items import item_bytes

WRITES = {"put_item", "update_item", "delete_item", "batch_execute_statement", "batch_write_item"}
UNIT_READ = 4096
NOT_REQUESTS = {"exceptions", "meta"}


@dataclass
class Counts:
    """What was counted, requests by `_kind`. What a tick asks although nothing is due is in `idle` alone."""

    requests: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)
    writes: float = 0.0
    reads: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, operation: str, params: dict[str, Any], answer: dict[str, Any]) -> None:
        """One request and its answer; an empty answer is that of a write whose condition did not hold."""
        with self.lock:
            if _is_idle(operation, params, answer):
                self.idle[operation] += 1
                return
            self.requests[_kind(operation, params)] += 1
            if operation in WRITES:
                self.writes += write_units(operation, params, answer)
            else:
                self.reads += read_units(operation, params, answer)

    @property
    def sqs(self) -> int:
        return sum(count for name, count in self.requests.items() if _is_sqs(name))

    @property
    def dynamodb(self) -> int:
        return self.requests.total() - self.sqs

    def forget(self) -> None:
        """Begin anew."""
        self.requests, self.idle, self.writes, self.reads = Counter(), Counter(), 0.0, 0.0


class Counted:
    """A client whose requests are counted."""

    def __init__(self, client: Any, counts: Counts) -> None:
        self._client, self._counts = client, counts

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._client, name)
        if name in NOT_REQUESTS:
            return operation

        def counted(**params: Any) -> Any:
            asked = params | ({"ReturnConsumedCapacity": "TOTAL"} if name in WRITES else {})
            try:
                answer = operation(**asked)
            except ClientError:
                self._counts.add(name, params, {})
                raise
            self._counts.add(name, params, answer)
            return answer

        setattr(self, name, counted)
        return counted


def counted(aws: Aws, counts: Counts) -> Aws:
    """`aws` with clients whose requests are counted."""
    clients: Any = {"dynamodb": Counted(aws.dynamodb, counts), "sqs": Counted(aws.sqs, counts)}
    return replace(aws, **clients)


def write_units(operation: str, params: dict[str, Any], answer: dict[str, Any]) -> float:
    """Of one request, table and indexes together."""
    consumed: Any = answer.get("ConsumedCapacity", {"CapacityUnits": 1.0})
    units = sum(one["CapacityUnits"] for one in (consumed if isinstance(consumed, list) else [consumed]))
    if operation != "batch_execute_statement":
        return float(units)
    statements = zip(params["Statements"], answer["Responses"], strict=True)
    return float(units + sum(_index_units(one["Statement"]) for one, done in statements if "Error" not in done))


def _index_units(statement: str) -> int:
    if statement.startswith("INSERT"):
        return sum(f"'{name}'" in statement for name in (keys.DUE_KEY, keys.LIST_KEY))
    return 2 if f'SET "{keys.DUE_KEY}"' in statement else 1 if f'REMOVE "{keys.DUE_KEY}"' in statement else 0


def read_units(operation: str, params: dict[str, Any], answer: dict[str, Any]) -> float:
    """Of one request; 0 for one that is no read of the table."""
    if operation == "get_item":
        found = answer.get("Item")
        return float(max(1, ceil(item_bytes(found) / UNIT_READ) if found else 1))
    if operation == "batch_get_item":
        (items,) = answer["Responses"].values()
        asked = sum(len(one["Keys"]) for one in params["RequestItems"].values())
        return float(sum(ceil(item_bytes(item) / UNIT_READ) for item in items) + asked - len(items))
    if operation in ("query", "scan"):
        units = max(1, ceil(sum(map(item_bytes, answer["Items"])) / UNIT_READ))
        return units if params.get("ConsistentRead") else units / 2
    return 0.0


def _kind(operation: str, params: dict[str, Any]) -> str:
    """The operation; what is asked of runs, apart: `start` and `end`, together or alone."""
    if operation == "batch_execute_statement":
        first = params["Statements"][0]
        if any(value.get("S", "").startswith(keys.RUN_PREFIX) for value in first["Parameters"]):
            return "batched start" if first["Statement"].startswith("INSERT") else "batched end"
    if operation == "update_item" and params["Key"][keys.SK]["S"].startswith(keys.RUN_PREFIX):
        return "start" if ":opened" in params["ExpressionAttributeValues"] else "end"
    return operation


def _is_idle(operation: str, params: dict[str, Any], answer: dict[str, Any]) -> bool:
    """The lease, and looks into the index and the journal that find nothing."""
    if operation == "update_item":
        return bool(params["Key"][keys.SK]["S"] == keys.LEASE)
    if operation != "query" or answer["Items"]:
        return False
    of = params["ExpressionAttributeValues"].get(":pk", {"S": ""})["S"]
    return "IndexName" in params or of.startswith("shard#")


def _is_sqs(name: str) -> bool:
    return "message" in name
