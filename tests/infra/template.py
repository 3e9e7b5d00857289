"""Reads a synthesised template the way the tests ask about it: by type, by function, by role."""

import json
from dataclasses import dataclass
from typing import Any

from shared.model.job import Priority

Resource = dict[str, Any]


@dataclass(frozen=True)
class Statement:
    """One statement of a role's policy, with references written out as text."""

    actions: frozenset[str]
    resources: tuple[str, ...]


class Template:
    """A CloudFormation template."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.resources: dict[str, Resource] = body["Resources"]
        self.outputs: dict[str, Any] = body["Outputs"]

    def all(self, kind: str) -> dict[str, Resource]:
        """Logical id → properties of every resource of `kind`."""
        return {name: r.get("Properties", {}) for name, r in self.resources.items() if r["Type"] == kind}

    def only(self, kind: str) -> Resource:
        """The properties of the one resource of `kind`."""
        found = self.all(kind)
        assert len(found) == 1, f"{len(found)} resources of {kind}: {list(found)}"
        return next(iter(found.values()))

    def job_queue(self, priority: Priority) -> tuple[str, Resource]:
        """Logical id and properties of the queue that carries jobs of `priority`."""
        prefix = {"high": "QueuesHighJobs", "normal": "QueuesJobs", "low": "QueuesLowJobs"}[priority]
        found = {k: v for k, v in self.all("AWS::SQS::Queue").items() if k.startswith(prefix)}
        assert len(found) == 1
        return next(iter(found.items()))

    def dead_letters(self) -> tuple[str, Resource]:
        """Logical id and properties of the dead-letter queue."""
        (found,) = ((k, v) for k, v in self.all("AWS::SQS::Queue").items() if k.startswith("QueuesDeadLetters"))
        return found

    def function(self, name: str) -> tuple[str, Resource]:
        """Logical id and properties of the function whose code is functions/<name>."""
        handler = f"functions.{name}.handler.handler"
        found = {k: v for k, v in self.all("AWS::Lambda::Function").items() if v["Handler"] == handler}
        assert len(found) == 1
        return next(iter(found.items()))

    def role_of(self, name: str) -> tuple[str, Resource]:
        """Logical id and properties of a function's role."""
        _, function = self.function(name)
        role = function["Role"]["Fn::GetAtt"][0]
        return role, self.resources[role]["Properties"]

    def may(self, name: str) -> list[Statement]:
        """Every statement that a function's role carries, in the role or in a policy attached to it."""
        logical_id, role = self.role_of(name)
        assert "ManagedPolicyArns" not in role
        documents = [policy["PolicyDocument"] for policy in role.get("Policies", [])]
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            for policy in self.all(kind).values():
                if {"Ref": logical_id} in policy.get("Roles", []):
                    documents.append(policy["PolicyDocument"])
        return [_statement(s) for document in documents for s in document["Statement"]]

    def alarm(self, name: str) -> Resource:
        """The alarm of this construct name."""
        found = [v for k, v in self.all("AWS::CloudWatch::Alarm").items() if k.startswith(f"Alarms{name}")]
        assert len(found) == 1, f"{len(found)} alarms named {name}"
        return found[0]


def _statement(raw: dict[str, Any]) -> Statement:
    assert raw["Effect"] == "Allow"
    actions = raw["Action"] if isinstance(raw["Action"], list) else [raw["Action"]]
    resources = raw["Resource"] if isinstance(raw["Resource"], list) else [raw["Resource"]]
    return Statement(frozenset(actions), tuple(written(r) for r in resources))


def written(value: object) -> str:
    """A value of the template as text: `${Table.Arn}/index/due`."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(written(part) for part in parts)
    raise AssertionError(f"cannot write {json.dumps(value)} out")
