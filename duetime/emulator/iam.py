"""Where ministack 1.5.33 enforces IAM by other rules than AWS. It never widens a grant."""

import importlib
import json
import re
from typing import Any

# AWS authorises a batch by the action of its entries; ministack asks for an action that does not exist.
BATCHES = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
# AWS authorises a PartiQL statement by its verb, on its table; ministack by the name of the call, on everything.
STATEMENT_CALLS = frozenset({"dynamodb:ExecuteStatement", "dynamodb:BatchExecuteStatement"})
VERBS = {"SELECT": "PartiQLSelect", "INSERT": "PartiQLInsert", "UPDATE": "PartiQLUpdate", "DELETE": "PartiQLDelete"}
_STATEMENT = re.compile(
    r"\s*(?:(UPDATE)|(INSERT)\s+INTO|(DELETE)\s+FROM|(SELECT)\b.*?\bFROM)\s+\"?([\w.-]+)\"?(?:\.\"?([\w.-]+)\"?)?",
    re.IGNORECASE | re.DOTALL,
)


def as_on_aws() -> None:
    """Put AWS's rules in place. Call before the server starts."""
    app: Any = importlib.import_module("ministack.app")
    actions: Any = importlib.import_module("ministack.core.iam_actions")
    pin, extract, transaction_checks = (
        app.pin_request_origin,
        actions.extract_iam_action,
        actions.dynamodb_transaction_checks,
    )

    def action_of(*request: object) -> str | None:
        action: str | None = extract(*request)
        return BATCHES.get(action or "", action)

    def checks_of(action: str, body: bytes, region: str, account: str) -> list[tuple[str, str]]:
        if action in STATEMENT_CALLS:
            return statement_checks(body, region, account)
        found: list[tuple[str, str]] = transaction_checks(action, body, region, account)
        return found

    # The queues' policies refuse calls without TLS; what never leaves this machine counts as protected by it.
    app.pin_request_origin = lambda address, secure: pin(address, True)
    actions.extract_iam_action = action_of
    actions.dynamodb_transaction_checks = checks_of


def statement_checks(body: bytes, region: str, account: str) -> list[tuple[str, str]]:
    """The action and the table (or index) of each PartiQL statement in a request.

    None at all when any cannot be read: ministack then asks for the call's own action, which nobody is granted.
    """
    try:
        request = json.loads(body)
    except ValueError:
        return []
    checks = set()
    for statement in request.get("Statements", [request]):
        found = _STATEMENT.match(str(statement.get("Statement", "")))
        if not found:
            return []
        verb = next(filter(None, found.groups()[:4])).upper()
        table, index = found.group(5), found.group(6)
        path = f"{table}/index/{index}" if index else table
        checks.add((f"dynamodb:{VERBS[verb]}", f"arn:aws:dynamodb:{region}:{account}:table/{path}"))
    return sorted(checks)
