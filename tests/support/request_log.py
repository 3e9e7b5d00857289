"""Keeps every AWS request of a block: what was asked, what it cost, what IAM must allow. It never changes an answer."""

import contextlib
import copy
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support import calls
from tests.support.aws import Aws
from tests.support.calls import Call, Observer
from tests.support.moto_partiql import UpdatesByUpdateItem

_DYNAMODB_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
_DYNAMODB_READS = ("GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems")
_PARTIQL = ("BatchExecuteStatement", "ExecuteStatement")
_TRANSACT = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


@dataclass(frozen=True, order=True)
class Permission:
    """What an IAM policy must allow: `sqs:SendMessage` on `jobs-…`, `dynamodb:Query` on `duetime-…/index/due`."""

    action: str
    resource: str


@dataclass
class Request:
    """One request as the product made it. `answer` is None when none came back."""

    service: str
    operation: str
    params: dict[str, Any]
    answer: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"

    @property
    def error(self) -> str | None:
        code: str | None = (self.answer or {}).get("Error", {}).get("Code")
        return code

    @property
    def is_write(self) -> bool:
        if self.operation in _PARTIQL:
            return not all(verb == "SELECT" for verb in _verbs(self.params))
        return self.service == "dynamodb" and self.operation in _DYNAMODB_WRITES

    @property
    def units(self) -> float:
        """Consumed capacity of table and indexes together, as the stand-in answered it."""
        consumed = (self.answer or {}).get("ConsumedCapacity", [])
        return float(sum(one["CapacityUnits"] for one in (consumed if isinstance(consumed, list) else [consumed])))

    @property
    def permissions(self) -> set[Permission]:
        """As AWS names them: a batch of messages needs no action of its own, a statement one by its verb.

        https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
        https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
        """
        if self.service == "sqs":
            action = self.operation.removesuffix("Batch")
            return {Permission(f"sqs:{action}", self.params["QueueUrl"].rsplit("/", 1)[-1])}
        if self.service == "dynamodb":
            return {Permission(f"dynamodb:{action}", resource) for action, resource in self._dynamodb()}
        return {Permission(self.name, "*")}

    def _dynamodb(self) -> set[tuple[str, str]]:
        params = self.params
        if self.operation in _PARTIQL:
            tables = [statement.split('"')[1] for statement in _statements(params)]
            return {(f"PartiQL{verb.title()}", table) for verb, table in zip(_verbs(params), tables, strict=True)}
        if self.operation in ("TransactWriteItems", "TransactGetItems"):
            actions = [next(iter(action.items())) for action in params["TransactItems"]]
            return {(_TRANSACT.get(kind, "GetItem"), action["TableName"]) for kind, action in actions}
        if "RequestItems" in params:
            return {(self.operation, table) for table in params["RequestItems"]}
        index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
        return {(self.operation, params["TableName"] + index)}


def _statements(params: dict[str, Any]) -> list[str]:
    many = params.get("Statements") or [params]
    return [one["Statement"] for one in many]


def _verbs(params: dict[str, Any]) -> list[str]:
    return [statement.split()[0].upper() for statement in _statements(params)]


@dataclass
class RequestLog(Observer):
    """All requests of a block, in order, from every thread."""

    order = calls.LOG
    requests: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on_request(self, call: Call) -> None:
        if call.service == "dynamodb" and call.operation in (*_DYNAMODB_WRITES, *_DYNAMODB_READS, *_PARTIQL):
            call.params["ReturnConsumedCapacity"] = "INDEXES"

    def answer(self, call: Call) -> None:
        request = Request(call.service, call.operation, call.asked)
        call.notes["request"] = request
        with self._lock:
            self.requests.append(request)

    def on_answer(self, call: Call) -> None:
        request: Request | None = call.notes.get("request")  # none for a call that began before the log
        if request is not None:
            request.answer = copy.deepcopy(call.answer)

    def named(self, name: str) -> list[Request]:
        """All of `sqs:SendMessageBatch`."""
        return [request for request in self.requests if request.name == name]

    def counts(self) -> Counter[str]:
        return Counter(request.name for request in self.requests)

    @property
    def write_units(self) -> float:
        return sum(request.units for request in self.requests if request.is_write)

    @property
    def read_units(self) -> float:
        return sum(request.units for request in self.requests if not request.is_write)

    @property
    def permissions(self) -> set[Permission]:
        return {permission for request in self.requests for permission in request.permissions}


@contextlib.contextmanager
def logging() -> Iterator[RequestLog]:
    log = RequestLog()
    with calls.observing(log):
        yield log


@contextlib.contextmanager
def measuring(aws: Aws) -> Iterator[RequestLog]:
    """A log whose write units are those of AWS's rules, index writes included; on the emulator only.

    The emulator counts one unit for any statement of BatchExecuteStatement, whatever it writes to the index. Run as
    single UpdateItem calls, it counts table and index as DynamoDB does.
    """
    if aws.backend != "emulator":
        raise ValueError(f"units are measured on the emulator, not on {aws.backend}: moto does not count index writes")
    with logging() as log, calls.observing(UpdatesByUpdateItem(aws.dynamodb)):
        yield log
