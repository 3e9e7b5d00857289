"""Judges each request against AWS's documented limits; both stand-ins are softer. It never changes a request.

On in the whole suite (tests/conftest.py). A broken rule is raised where the request was made and recorded as well, so
that the test fails even when the code under test catches everything. The rules themselves:
aws_rules_sqs, aws_rules_dynamodb, aws_rules_items, aws_rules_expressions, aws_rules_partiql.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from tests.support import aws_rules_dynamodb, aws_rules_sqs
from tests.support.calls import RULES as RULES_ORDER
from tests.support.calls import Call, Observer


class AwsRuleError(BaseException):
    """A request that AWS would refuse. Not an Exception, so that no `except Exception` of the product hides it."""


def problems(service: str, operation: str, params: dict[str, Any]) -> list[str]:
    """What AWS would find wrong with this request; empty if nothing."""
    rules = {"sqs": aws_rules_sqs.problems, "dynamodb": aws_rules_dynamodb.problems}.get(service)
    return list(rules(operation, params)) if rules else []


class AwsRules(Observer):
    """The observer. `broken` holds what was found since the last `forget`."""

    order = RULES_ORDER

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.on = True

    def answer(self, call: Call) -> None:
        """Judges what the caller asked for, once botocore has found its form right, and never answers."""
        found = problems(call.service, call.operation, call.asked) if self.on else []
        if found:
            message = f"{call.name} breaks AWS's rules: {'; '.join(found)}"
            self.broken.append(message)
            raise AwsRuleError(message)

    def forget(self) -> list[str]:
        broken, self.broken = self.broken, []
        return broken


RULES = AwsRules()


@contextlib.contextmanager
def off() -> Iterator[None]:
    """For tests of a stand-in's own answers to bad requests."""
    RULES.on = False
    try:
        yield
    finally:
        RULES.on = True


@contextlib.contextmanager
def breaking(match: str) -> Iterator[None]:
    """For tests that mean it: the block must break a rule whose message has `match` (a pattern) in it."""
    before = len(RULES.broken)
    with contextlib.suppress(AwsRuleError):
        yield
    found = RULES.broken[before:]
    del RULES.broken[before:]
    assert any(re.search(match, message) for message in found), f"no rule like {match!r} was broken, only: {found}"
