"""The OpenAPI 3.1 document, made of the wire models and the table of routes.

Of its own it has the shapes of two bodies that are read by hand.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from functions.submit import problems
from functions.submit.models import MAX_BATCH, Body, GroupBody, JobBody, PreviewBody
from functions.submit.operations import Operation, Parameter
from functions.submit.patch import FIXED, NEVER_NULL
from functions.submit.problems import CONTENT_TYPE, Kind, Problem


class BatchBody(Body):
    """The body of `POST /v1/jobs:batch`: its jobs are read one by one."""

    jobs: Annotated[list[JobBody], Field(min_length=1, max_length=MAX_BATCH)] = Field(
        description="Each is judged alone; parents may stand anywhere among them."
    )


class ChangeBody(JobBody):
    """The body of `PATCH /v1/jobs/{job_id}`: any of these fields; null gives a field its default."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler.resolve_ref_schema(handler(schema))
        fields = {name: field for name, field in made["properties"].items() if name not in FIXED}
        for name, field in fields.items():
            field.pop("default", None)
            if name not in NEVER_NULL and name != "payload":
                fields[name] = {"anyOf": [field, {"type": "null"}]}
        for name in ("required", "oneOf"):
            made.pop(name, None)
        made |= {"properties": fields, "minProperties": 1}
        return made


BODIES = {model.__name__: model for model in (JobBody, BatchBody, ChangeBody, GroupBody, PreviewBody)}
Json = dict[str, Any]  # a part of the document: nobody reads it back

_EVERYWHERE = (problems.INTERNAL, problems.UNAVAILABLE)
_IAM = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4, service `execute-api`, of a principal that may call `execute-api:Invoke`.",
}


class _Plain(GenerateJsonSchema):
    """Schemas without made-up titles, and without a default where a field is simply left out."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Json:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


def openapi_document(operations: tuple[Operation, ...], max_timeout_s: int, handler_names: frozenset[str]) -> Json:
    """The document for `operations` as this deployment runs them: with its longest timeout and its handlers."""
    schemas, ref = _schemas(operations)
    schemas["JobBody"]["properties"]["timeout_s"]["maximum"] = max_timeout_s
    schemas["TargetBody"]["properties"]["handler"]["enum"] = sorted(handler_names)
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, ref)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": "1",
            "description": "A distributed job scheduler. All answered times are RFC 3339 in UTC.",
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"iam": _IAM}},
        "security": [{"iam": []}],
    }


def _schemas(operations: Iterable[Operation]) -> tuple[Json, Mapping[type, Json]]:
    """All named schemas, and for each shape the schema that refers to it."""
    bodies = [BODIES[operation.body] for operation in operations if operation.body is not None]
    shapes: list[tuple[type, JsonSchemaMode]] = [(body, "validation") for body in bodies]
    shapes += [(shape, "serialization") for shape in {operation.answer: 0 for operation in operations} | {Problem: 0}]
    inputs = [(shape, mode, TypeAdapter[Any](shape)) for shape, mode in shapes]
    refs, made = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}", schema_generator=_Plain)
    named: Json = made["$defs"]
    return named, {shape: ref for (shape, _), ref in refs.items()}


def _operation(operation: Operation, ref: Mapping[type, Json]) -> Json:
    answer = {"content": {"application/json": {"schema": ref[operation.answer]}}}
    responses: Json = {str(operation.status): {"description": operation.summary + ".", **answer}}
    if operation.headers:
        headers = {name: _header(text, "string") for name, text in operation.headers.items()}
        responses[str(operation.status)]["headers"] = headers
    responses["403"] = {"description": "Not allowed by IAM: answered by API Gateway, not by Duetime."}
    kinds = sorted((*operation.problems, *_EVERYWHERE), key=lambda kind: kind.status)
    for status, group in groupby(kinds, key=lambda kind: kind.status):
        responses[str(status)] = _problem(list(group), ref)
    for status, text in operation.also.items():
        there = responses.setdefault(str(status), {"description": "", "content": {}})
        there["description"] = f"{text} Or: {there['description']}" if there["description"] else text
        there["content"] |= answer["content"]
    made: Json = {"operationId": operation.operation_id, "summary": operation.summary, "responses": responses}
    if operation.parameters:
        made["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.body is not None:
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": ref[BODIES[operation.body]]}},
        }
    return made


def _problem(kinds: list[Kind], ref: Mapping[type, Json]) -> Json:
    types = ", ".join(f"`{kind.type}`" for kind in kinds)
    made: Json = {
        "description": f"{'; '.join(kind.title for kind in kinds)} ({types}).",
        "content": {CONTENT_TYPE: {"schema": ref[Problem]}},
    }
    if any(kind.retry for kind in kinds):
        made["headers"] = {"Retry-After": _header("Seconds after which to try again.", "integer")}
    return made


def _parameter(parameter: Parameter) -> Json:
    made: Json = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "schema": parameter.schema,
    }
    return made | ({"required": True} if parameter.place == "path" else {})


def _header(description: str, kind: str) -> Json:
    return {"description": description, "schema": {"type": kind}}
