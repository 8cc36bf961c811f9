"""The OpenAPI document, made from the operations and the types that they answer with."""

from functools import cache
from typing import Any

import msgspec

from capture_canary.export.api.answers import Problem
from capture_canary.export.api.operations import OPERATIONS, Operation, Parameter

PREFIX = "/api/v1"
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


@cache
def document(version: str) -> bytes:
    """Return the document as JSON."""
    kinds = [*(operation.answer for operation in OPERATIONS), Problem]
    schemas, components = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    problem = schemas[-1]
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Capture Canary",
                "version": version,
                "description": "Health of graph capture on an Ascend NPU node. Times are Unix seconds.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "../.."}],
            "paths": {
                PREFIX + operation.path: {"get": _operation(operation, schema, problem)}
                for operation, schema in zip(OPERATIONS, schemas, strict=False)
            },
            # Not asked for unless the web config file names users.
            "security": [{}, {"basic": []}],
            "components": {
                "schemas": components,
                "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            },
        }
    )


def _operation(operation: Operation, schema: Any, problem: Any) -> dict[str, Any]:
    responses = {
        "200": {"description": "the answer", "content": _json(schema)},
        "401": {"description": "no user, or a wrong password", "content": _TEXT},
        "503": {"description": "too many passwords to check", "content": _TEXT},
    }
    if operation.parameters:
        responses["400"] = {"description": "a wrong parameter", "content": _json(problem)}
    if any(one.default is None for one in operation.parameters):
        responses["404"] = {"description": "not there", "content": _json(problem)}
    return {
        "operationId": operation.path.strip("/").replace("/{id}", "_by_id"),
        "summary": operation.summary,
        "parameters": [_parameter(one) for one in operation.parameters],
        "responses": responses,
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameter(one: Parameter) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "integer", "minimum": one.least, "maximum": one.most}
    in_path = one.default is None
    if not in_path:
        kind["default"] = one.default
    return {
        "name": one.name,
        "in": "path" if in_path else "query",
        "required": in_path,
        "description": one.about,
        "schema": kind,
    }
