"""How a batch is refused in part: which entries are held back from the service, and how its answer tells of them.

It never decides which call is struck; fault_injection does. Its form for each operation is that of the API reference:
Failed (SQS), UnprocessedItems, UnprocessedKeys and statement errors (DynamoDB).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.calls import Call

Params = dict[str, Any]


@dataclass(frozen=True)
class Partial:
    """Refuse the entries of these indexes, see fault_injection.Faults.partly."""

    entries: tuple[int, ...]
    code: str | None
    done: bool
    silent: bool


@dataclass
class _Held:
    partial: Partial
    whole: list[Any]  # every entry that was asked for


def _list_of(operation: str, params: Params) -> list[Any]:
    """The entries of a batch as one flat list."""
    if operation == "BatchExecuteStatement":
        return list(params["Statements"])
    if operation == "BatchWriteItem":
        return [(table, request) for table, requests in params["RequestItems"].items() for request in requests]
    if operation == "BatchGetItem":
        return [(table, key) for table, request in params["RequestItems"].items() for key in request["Keys"]]
    return list(params["Entries"])


def _put_list(operation: str, params: Params, entries: list[Any]) -> None:
    if operation == "BatchExecuteStatement":
        params["Statements"] = entries
    elif operation == "BatchWriteItem":
        params["RequestItems"] = _by_table(entries)
    elif operation == "BatchGetItem":
        asked = params["RequestItems"]
        params["RequestItems"] = {t: {**asked[t], "Keys": found} for t, found in _by_table(entries).items()}
    else:
        params["Entries"] = entries


def _by_table(entries: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    tables: dict[str, list[Any]] = {}
    for table, entry in entries:
        tables.setdefault(table, []).append(entry)
    return tables


def withhold(partial: Partial, call: Call) -> None:
    """Take the entries out of the request, unless they are to take effect."""
    whole = _list_of(call.operation, call.params)
    unknown = [index for index in partial.entries if index >= len(whole)]
    assert not unknown, f"{call.name} has {len(whole)} entries, there is no {unknown}"
    call.notes["held"] = _Held(partial, whole)
    rest = [entry for index, entry in enumerate(whole) if index not in partial.entries]
    if not partial.done and rest:  # an empty batch cannot be sent
        _put_list(call.operation, call.params, rest)


def answer_when_nothing_is_left(call: Call) -> dict[str, Any] | None:
    held: _Held | None = call.notes.get("held")
    if held is None or held.partial.done or len(set(held.partial.entries)) < len(held.whole):
        return None
    if call.operation in ("BatchExecuteStatement", "BatchGetItem"):
        return {"Responses": [] if call.operation == "BatchExecuteStatement" else {}}
    return {}


def report(call: Call) -> None:
    """Put the refused entries into the answer."""
    held: _Held | None = call.notes.get("held")
    if held is not None and call.answer is not None:
        _REPORTS.get(call.operation, _report_failed)(call, held, call.answer)


def _report_failed(_: Call, held: _Held, answer: dict[str, Any]) -> None:
    ids = [held.whole[index]["Id"] for index in held.partial.entries]
    answer["Successful"] = [one for one in answer.get("Successful", []) if one["Id"] not in ids]
    code = held.partial.code or "InternalError"
    failed = [{"Id": i, "SenderFault": False, "Code": code, "Message": "injected by the test"} for i in ids]
    if failed and not held.partial.silent:
        answer["Failed"] = answer.get("Failed", []) + failed


def _report_items(_: Call, held: _Held, answer: dict[str, Any]) -> None:
    if not held.partial.silent:
        answer["UnprocessedItems"] = _by_table([held.whole[index] for index in held.partial.entries])


def _report_keys(call: Call, held: _Held, answer: dict[str, Any]) -> None:
    asked = call.asked["RequestItems"]
    lost = _by_table([held.whole[index] for index in held.partial.entries])
    if not held.partial.silent:
        answer["UnprocessedKeys"] = {table: {**asked[table], "Keys": found} for table, found in lost.items()}


def _report_statements(call: Call, held: _Held, answer: dict[str, Any]) -> None:
    error = {"Error": {"Code": held.partial.code or "ThrottlingError", "Message": "injected by the test"}}
    responses = list(answer["Responses"])
    for index in sorted(held.partial.entries):
        if held.partial.done:
            responses[index] = error
        else:
            responses.insert(index, error)
    answer["Responses"] = responses


_REPORTS: dict[str, Callable[[Call, _Held, dict[str, Any]], None]] = {
    "BatchWriteItem": _report_items,
    "BatchGetItem": _report_keys,
    "BatchExecuteStatement": _report_statements,
}
