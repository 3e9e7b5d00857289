"""Lets moto judge BatchExecuteStatement: each UPDATE becomes one conditional UpdateItem, each INSERT one PutItem.

It changes no other call. moto 5.2.5 fails at a second SET, passes over a WHERE that is not true, and stops the whole
batch at an INSERT of what is there. DynamoDB judges each statement alone and
answers in the place of that statement:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tests.support import calls
from tests.support.calls import Call, Observer
from tests.support.partiql import (
    Condition,
    Insert,
    PartiqlError,
    Path,
    Sum,
    Update,
    Value,
    is_insert,
    is_update,
    read_insert,
    read_update,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


_FAILED = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}


class UntranslatableError(BaseException):
    """A statement that cannot be run on moto; not an Exception, so that no code under test hides it."""


class UpdatesByUpdateItem(Observer):
    """Answers BatchExecuteStatement with UPDATEs through `dynamodb`, a client of the same stand-in."""

    def __init__(self, dynamodb: "DynamoDBClient") -> None:
        self._dynamodb = dynamodb

    def answer(self, call: Call) -> dict[str, Any] | None:
        if not call.endpoint.startswith(self._dynamodb.meta.endpoint_url):
            return None
        if call.name == "dynamodb:ExecuteStatement" and is_update(call.params["Statement"]):
            raise UntranslatableError("ExecuteStatement with UPDATE: send it as a BatchExecuteStatement of one")
        if call.name != "dynamodb:BatchExecuteStatement":
            return None
        statements = call.params["Statements"]
        updates = [is_update(one["Statement"]) or is_insert(one["Statement"]) for one in statements]
        if not any(updates):
            return None
        if not all(updates):
            raise UntranslatableError("BatchExecuteStatement: UPDATEs and INSERTs mixed with other statements")
        capacity: dict[str, float] = {}
        with calls.unseen():
            responses = [self._run(statement, capacity) for statement in statements]
        answer: dict[str, Any] = {"Responses": responses}
        if call.params.get("ReturnConsumedCapacity", "NONE") != "NONE":
            answer["ConsumedCapacity"] = [{"TableName": t, "CapacityUnits": units} for t, units in capacity.items()]
        return answer

    def _run(self, statement: dict[str, Any], capacity: dict[str, float]) -> dict[str, Any]:
        if is_insert(statement["Statement"]):
            return self._insert(statement, capacity)
        try:
            update = read_update(statement["Statement"], statement.get("Parameters", []))
            key_names = self._key_names(update.table)
            request = update_item_request(update, key_names)
        except PartiqlError as error:
            return {"Error": {"Code": "ValidationError", "Message": f"{statement['Statement']!r} {error}"}}
        except self._dynamodb.exceptions.ResourceNotFoundException:
            return {"Error": {"Code": "ResourceNotFound", "Message": "Requested resource not found"}}
        old = statement.get("ReturnValuesOnConditionCheckFailure", "NONE")
        try:
            answer = self._dynamodb.update_item(
                **request, ReturnConsumedCapacity="TOTAL", ReturnValuesOnConditionCheckFailure=old
            )
        except ClientError as error:
            code = error.response["Error"]["Code"].removesuffix("Exception")
            if code != "ConditionalCheckFailed":
                code = "ValidationError" if code == "Validation" else code
                return {"Error": {"Code": code, "Message": error.response["Error"]["Message"]}}
            _add(capacity, update.table, 1.0)
            failure: dict[str, Any] = dict(_FAILED)
            response: Any = error.response
            if response.get("Item"):
                failure["Item"] = response["Item"]
            return {"Error": failure, "TableName": update.table}
        except TypeError:  # moto cannot compare values of two types; DynamoDB finds them neither equal nor in order
            return {"Error": dict(_FAILED), "TableName": update.table}
        _add(capacity, update.table, max(1.0, answer["ConsumedCapacity"]["CapacityUnits"]))  # moto says 0.5
        return {"TableName": update.table}

    def _insert(self, statement: dict[str, Any], capacity: dict[str, float]) -> dict[str, Any]:
        try:
            insert = read_insert(statement["Statement"], statement.get("Parameters", []))
            self._put(insert)
        except PartiqlError as error:
            return {"Error": {"Code": "ValidationError", "Message": f"{statement['Statement']!r} {error}"}}
        except self._dynamodb.exceptions.ResourceNotFoundException:
            return {"Error": {"Code": "ResourceNotFound", "Message": "Requested resource not found"}}
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            _add(capacity, insert.table, 1.0)
            failure = {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}
            return {"Error": failure, "TableName": insert.table}
        except ClientError as error:
            return {"Error": {"Code": "ValidationError", "Message": error.response["Error"]["Message"]}}
        _add(capacity, insert.table, 1.0)
        return {"TableName": insert.table}

    def _put(self, insert: Insert) -> None:
        key_names = self._key_names(insert.table)
        if missing := [name for name in key_names if name not in insert.item]:
            raise PartiqlError(f"has no key attributes {missing}")
        item: Any = insert.item
        free = f"attribute_not_exists({key_names[0]})"
        self._dynamodb.put_item(TableName=insert.table, Item=item, ConditionExpression=free)

    def _key_names(self, table: str) -> list[str]:
        schema = self._dynamodb.describe_table(TableName=table)["Table"]["KeySchema"]
        return [element["AttributeName"] for element in schema]


def _add(capacity: dict[str, float], table: str, units: float) -> None:
    capacity[table] = capacity.get(table, 0.0) + units


@dataclass
class _Expressions:
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def path(self, path: Path) -> str:
        text = ""
        for part in path.parts:
            if isinstance(part, int):
                text += f"[{part}]"
                continue
            placeholder = next((p for p, name in self.names.items() if name == part), f"#n{len(self.names)}")
            self.names[placeholder] = part
            text += f"{'.' if text else ''}{placeholder}"
        return text

    def operand(self, operand: "Path | Value") -> str:
        if isinstance(operand, Path):
            return self.path(operand)
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = operand
        return placeholder

    def value(self, value: "Path | Value | Sum") -> str:
        if isinstance(value, Sum):
            return f"{self.operand(value.left)} {value.operator} {self.operand(value.right)}"
        return self.operand(value)

    def condition(self, condition: Condition) -> str:
        if condition.operator == "exists":
            return f"attribute_exists({self.path(condition.path)})"
        if condition.operator == "missing":
            return f"attribute_not_exists({self.path(condition.path)})"
        assert condition.right is not None
        return f"{self.path(condition.path)} {condition.operator} {self.operand(condition.right)}"


def update_item_request(update: Update, key_names: list[str]) -> dict[str, Any]:
    """The UpdateItem that does what `update` does: an item that is not there fails the condition and is not made."""
    key: dict[str, Value] = {}
    others: list[Condition] = []
    for condition in update.where:
        if condition.path.name in key_names and condition.operator == "=" and isinstance(condition.right, dict):
            key[condition.path.name] = condition.right
        else:
            others.append(condition)
    if missing := [name for name in key_names if name not in key]:
        raise PartiqlError(f"has no equality on the key attributes {missing}")
    write = _Expressions()
    sets = [f"{write.path(path)} = {write.value(value)}" for path, value in update.sets]
    removes = [write.path(path) for path in update.removes]
    guards = [Condition(Path((name,)), "exists") for name in key_names]
    clauses = [write.condition(condition) for condition in [*guards, *others]]
    request: dict[str, Any] = {
        "TableName": update.table,
        "Key": key,
        "UpdateExpression": " ".join(
            f"{word} {', '.join(parts)}" for word, parts in (("SET", sets), ("REMOVE", removes)) if parts
        ),
        "ConditionExpression": " AND ".join(clauses),
        "ExpressionAttributeNames": write.names,
    }
    return request | ({"ExpressionAttributeValues": write.values} if write.values else {})
