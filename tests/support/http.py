"""The API function called with the events of a real HTTP API. Every answer is held against the OpenAPI document."""

import base64
import json
import os
import unittest.mock
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from jsonschema import Draft202012Validator

from functions.submit.openapi import openapi_document
from functions.submit.routes import OPERATIONS
from shared.settings import SubmitSettings
from shared.wiring.api import Api

# The function is built as it is loaded; each test then puts its own deployment in the place of this one.
with unittest.mock.patch.dict(os.environ, dict.fromkeys(SubmitSettings.variables().values(), "1")):
    from functions.submit import handler as function

Query = dict[str, str | list[str]]  # a name with several values comes several times
ECHO = {"kind": "python", "handler": "demo.echo"}


@dataclass(frozen=True)
class Answer:
    """An answer as a client sees it; header names in lower case."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text, parse_constant=_not_json)

    @property
    def fields(self) -> list[str]:
        """The fields that a problem document names, in its order."""
        return [error["field"] for error in self.document.get("errors", [])]


class LambdaContext:
    """What Powertools reads of a Lambda context."""

    function_name = "duetime-submit"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:duetime-submit"
    aws_request_id = "5d1d41d4-8c79-4b69-a5ae-0d8b6d2e2b5f"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


class Http:
    """Calls the API function over `api`. A `body` that is not text or bytes is sent as JSON."""

    def __init__(self, monkeypatch: Any, api: Api) -> None:
        monkeypatch.setattr(function, "wired", api)
        self._document = openapi_document(OPERATIONS, api.settings.max_timeout_s, api.handler_names)

    def get(self, path: str, **query: str | list[str]) -> Answer:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.call("POST", path, body, **more)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        headers: dict[str, str] | None = None,
        caller: str | None = None,
        raw_query: str | None = None,
    ) -> Answer:
        event = http_api_event(method, path, body, query=query or {}, headers=headers or {}, caller=caller)
        if raw_query is not None:
            event["rawQueryString"] = raw_query
        raw = function.handler(event, LambdaContext())
        assert raw["isBase64Encoded"] is False
        answer = Answer(raw["statusCode"], {k.lower(): v for k, v in raw["headers"].items()}, raw["body"])
        self._check(method, path, answer)
        return answer

    def _check(self, method: str, path: str, answer: Answer) -> None:
        """The answer is one that the OpenAPI document tells of."""
        operation = next((o for o in OPERATIONS if o.method == method and o.has_path(path)), None)
        kind = answer.headers["content-type"]
        if operation is None:
            assert answer.status in {404, 405}
            schema = {"$ref": "#/components/schemas/Problem"}
        else:
            response = self._document["paths"][operation.path][method.lower()]["responses"][str(answer.status)]
            schema = response["content"][kind]["schema"]
        Draft202012Validator({**schema, "components": self._document["components"]}).validate(answer.document)
        if kind == "application/problem+json":
            assert answer.document["status"] == answer.status


def http_api_event(
    method: str,
    path: str,
    body: Any = None,
    *,
    query: Query | None = None,
    headers: dict[str, str] | None = None,
    caller: str | None = None,
) -> dict[str, Any]:
    """An event of payload format 2.0. `path` is decoded, as an HTTP API hands it over."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "tests"}
    context: dict[str, Any] = {
        "accountId": "123456789012",
        "apiId": "api123",
        "domainName": "api123.execute-api.us-east-1.amazonaws.com",
        "domainPrefix": "api123",
        "http": http,
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "ANY /v1/{proxy+}",
        "stage": "$default",
        "time": "30/Nov/2026:11:58:00 +0000",
        "timeEpoch": 1796039880000,
    }
    if caller:
        context["authorizer"] = {"iam": {"userArn": caller, "accountId": "123456789012", "callerId": "AIDA"}}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}, doseq=True),
        "headers": {"content-type": "application/json", "host": context["domainName"], **(headers or {})},
        "requestContext": context,
        "isBase64Encoded": isinstance(body, bytes),
    }
    if query:
        listed = {name: [value] if isinstance(value, str) else value for name, value in query.items()}
        event["queryStringParameters"] = {name: ",".join(values) for name, values in listed.items()}
    if body is not None:
        event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else _text(body)
    return event


def _text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)


def _not_json(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")
