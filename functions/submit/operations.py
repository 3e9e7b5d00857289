"""What one operation of the API is: its path, its call, and what the OpenAPI document says of it. It never runs one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from functions.submit import problems
from functions.submit.calls import Reply
from functions.submit.problems import Kind
from functions.submit.request import Request
from shared.wiring.api import Api

Call = Callable[[Request, Api, datetime], Reply]
Schema = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in the `path`, the `query` or a `header`."""

    name: str
    place: str
    description: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the API. Every operation may answer 500 and 503 beside `problems`."""

    operation_id: str
    method: str
    path: str  # with parameters as `{job_id}`
    call: Call
    summary: str
    answer: type  # the shape of its document
    status: int = 200
    also: Mapping[int, str] = field(default_factory=dict)  # other statuses with the same shape
    body: str | None = None  # the name of its model
    parameters: tuple[Parameter, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)  # of its answer
    problems: tuple[Kind, ...] = (problems.INVALID,)

    def match(self, path: str) -> Mapping[str, str] | None:
        """The parameters in `path`, decoded, if it is one of this operation's."""
        found = re.fullmatch(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/\\x00-\\x1f\\x7f]+)", re.escape(self.path)), path)
        return found.groupdict() if found else None

    def has_path(self, path: str) -> bool:
        """Whether `path`, decoded, is one of this operation's."""
        return self.match(path) is not None
