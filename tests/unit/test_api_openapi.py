"""The OpenAPI document is valid, complete, and says what the API does."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import ValidationError

from functions.submit import problems
from functions.submit.models import JobBody, Limits, PreviewBody, RetryBody, ScheduleFields, TargetBody
from functions.submit.openapi import openapi_document
from functions.submit.routes import OPERATIONS, route

HANDLERS = frozenset({"demo.echo", "demo.sleep"})
DOCUMENT = openapi_document(OPERATIONS, 105, HANDLERS)
SCHEMAS = DOCUMENT["components"]["schemas"]


def test_it_is_valid_openapi_31() -> None:
    assert list(OpenAPIV31SpecValidator(DOCUMENT).iter_errors()) == []
    assert DOCUMENT["openapi"].startswith("3.1.")


def test_every_route_is_in_it_and_no_other() -> None:
    told = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    routed = [route(operation.method, operation.path.replace("{", "").replace("}", ""))[0] for operation in OPERATIONS]
    assert told == {(operation.method, operation.path) for operation in routed}
    assert told == {
        ("POST", "/v1/jobs"),
        ("POST", "/v1/jobs:batch"),
        ("GET", "/v1/jobs"),
        ("GET", "/v1/jobs/{job_id}"),
        ("PATCH", "/v1/jobs/{job_id}"),
        ("POST", "/v1/jobs/{job_id}:cancel"),
        ("POST", "/v1/jobs/{job_id}:pause"),
        ("POST", "/v1/jobs/{job_id}:resume"),
        ("POST", "/v1/jobs/{job_id}:trigger"),
        ("POST", "/v1/jobs/{job_id}:redrive"),
        ("GET", "/v1/jobs/{job_id}/runs"),
        ("GET", "/v1/jobs/{job_id}/runs/{scheduled_for}"),
        ("POST", "/v1/jobs/{job_id}/runs/{scheduled_for}:redrive"),
        ("PUT", "/v1/groups/{group}"),
        ("GET", "/v1/groups/{group}"),
        ("POST", "/v1/preview"),
        ("GET", "/v1/health"),
        ("GET", "/v1/openapi.json"),
    }


def test_every_call_tells_of_its_problems() -> None:
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400 and status != "403":
                    assert "application/problem+json" in response["content"], (operation["operationId"], status)
            assert {"400", "500", "503"} <= set(operation["responses"])


@pytest.mark.parametrize("model", [JobBody, PreviewBody, RetryBody, TargetBody])
def test_every_field_of_a_body_is_in_it(model: Any) -> None:
    schema = SCHEMAS[model.__name__]
    assert set(schema["properties"]) == set(model.model_fields)
    assert schema["additionalProperties"] is False


def test_the_limits_are_in_it() -> None:
    job, retry = SCHEMAS["JobBody"]["properties"], SCHEMAS["RetryBody"]["properties"]
    assert (job["timeout_s"]["minimum"], job["timeout_s"]["maximum"], job["timeout_s"]["default"]) == (1, 105, 60)
    assert (retry["max_attempts"]["minimum"], retry["max_attempts"]["maximum"]) == (1, 100)
    assert (retry["factor"]["minimum"], retry["factor"]["maximum"], retry["max_s"]["maximum"]) == (1, 10, 604_800)
    assert job["tags"]["maxProperties"] == 20
    assert SCHEMAS["TargetBody"]["properties"]["handler"]["enum"] == ["demo.echo", "demo.sleep"]
    assert [choice["required"] for choice in SCHEMAS["JobBody"]["oneOf"]] == [
        ["run_at"],
        ["cron"],
        ["every"],
        ["depends_on"],
    ]


def test_a_field_that_may_be_missing_has_no_null() -> None:
    for model in (ScheduleFields, JobBody, PreviewBody):
        for name in model.model_fields:
            field = SCHEMAS["JobBody" if model is not PreviewBody else "PreviewBody"]["properties"][name]
            assert "null" not in str(field.get("type", "")), name
            assert field.get("default", 0) is not None, name


scalars = (
    st.none() | st.booleans() | st.integers(-2, 120) | st.sampled_from(["", "a", "a b", "run", "allow", "x" * 200])
)
fields = st.dictionaries(
    st.sampled_from([*JobBody.model_fields, "other"]),
    scalars
    | st.dictionaries(st.sampled_from(["max_attempts", "base_s", "kind", "handler", "a"]), scalars, max_size=3)
    | st.just({"kind": "python", "handler": "demo.echo"}),
    max_size=4,
)


@given(body=fields, target=st.booleans())
def test_what_it_allows_is_what_the_models_take(body: dict[str, Any], target: bool) -> None:
    """Field for field; that exactly one of the schedules is there is the rules' business and the schema's `oneOf`."""
    body = {**body, "target": {"kind": "python", "handler": "demo.echo"}} if target else body
    schema = {k: v for k, v in SCHEMAS["JobBody"].items() if k != "oneOf"}
    allowed = Draft202012Validator({**schema, "components": DOCUMENT["components"]}).is_valid(body)
    try:
        JobBody.model_validate(body, context=Limits(HANDLERS, 105))
    except ValidationError:
        taken = False
    else:
        taken = True
    assert allowed == taken


def test_the_page_for_people_names_all_of_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    for operation in OPERATIONS:
        assert f"`{operation.method} {operation.path}" in page
    for kind in vars(problems).values():
        if isinstance(kind, problems.Kind):
            assert f"| {kind.status} | `{kind.name}` |" in page
    for name in (*JobBody.model_fields, *RetryBody.model_fields, *PreviewBody.model_fields):
        assert f"`{name}`" in page
    for shape in ("JobDocument", "RunDocument", "AttemptDocument"):
        assert all(f'"{key}"' in page for key in SCHEMAS[shape]["properties"])
