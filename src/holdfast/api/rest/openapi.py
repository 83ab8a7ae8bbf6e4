"""The OpenAPI 3.1 document, made from the table of operations and the structs it names."""

from __future__ import annotations

from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from typing import Any, Final

import msgspec

from holdfast.api.errors import PROBLEM_TYPE, Problem
from holdfast.api.operation import Operation
from holdfast.api.operations import OPERATIONS
from holdfast.contract.history import HistoryEntry

JSON: Final = "application/json"
REFS: Final = "#/components/schemas/{name}"
NUMBERS: Final = frozenset({"event_id", "sequence"})
PROBLEMS: Final = {
    "400": "Malformed HTTP, or more than one key",
    "401": "No key, or one that does not count",
    "403": "The key's role is not enough",
    "404": "There is no such thing, or not for this caller",
    "405": "Not a method of this address",
    "409": "Not possible in the present state",
    "413": "Too large",
    "415": "Not JSON",
    "422": "Not valid; `field` says what",
    "429": "Too many",
    "431": "Headers too large",
    "500": "The server has failed",
    "503": "Not now; try again after `Retry-After` seconds",
    "507": "The server's disk is full",
}


def openapi() -> dict[str, Any]:
    structs = {
        struct
        for operation in OPERATIONS
        for struct in (operation.body, operation.answer, operation.query)
        if struct is not None
    }
    every: set[type[msgspec.Struct]] = {*structs, Problem, HistoryEntry}
    ordered = sorted(every, key=lambda struct: struct.__name__)
    refs, components = msgspec.json.schema_components(ordered, ref_template=REFS)
    for component in components.values():
        if "description" in component:  # Python 3.13 takes the indent off a docstring, earlier ones do not
            component["description"] = cleandoc(component["description"])
    schemas = dict(zip(ordered, refs, strict=True))
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas, components)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": _version(),
            "description": "A durable workflow engine. Instants are ISO 8601 in UTC; payloads are any JSON. Unknown "
            "fields are refused. `Idempotency-Key` makes a repeat of the same call harmless.",
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in OPERATIONS)],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key. A server that only its own machine can reach may do without.",
                }
            },
            "responses": {
                status: {
                    "description": text,
                    "content": {PROBLEM_TYPE: {"schema": schemas[Problem]}},
                }
                for status, text in PROBLEMS.items()
            },
        },
    }
    # As a reader gets it: defaults that are tuples or enums here are plain JSON there.
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return plain


def _described(operation: Operation, schemas: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "x-contract": operation.contract,
        "x-role": None if operation.role is None else str(operation.role),
        "parameters": [*map(_path_parameter, operation.parameters), *_others(operation, components)],
        "responses": {
            str(operation.status): _answer(operation, schemas),
            **{status: {"$ref": f"#/components/responses/{status}"} for status in PROBLEMS},
        },
    }
    if operation.body is not None:
        content: dict[str, Any] = {"schema": schemas[operation.body]}
        if operation.example is not None:
            content["example"] = operation.example
        described["requestBody"] = {"required": _is_required(operation.body), "content": {JSON: content}}
    if operation.role is None:
        described["security"] = []
    return described


def _is_required(body: type[msgspec.Struct]) -> bool:
    return any(field.required for field in msgspec.structs.fields(body))


def _path_parameter(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 255}
    if name in NUMBERS:
        schema = {"type": "integer", "minimum": 1, "maximum": 2**62 - 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _others(operation: Operation, components: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if operation.query is not None:
        properties = components[operation.query.__name__]["properties"]
        found += [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]
    if operation.body is not None and "request_id" in operation.body.__struct_fields__:
        found.append(_header("Idempotency-Key", "The same key again is the same call.", 255))
    if operation.streams and operation.answer is HistoryEntry:
        found.append(_header("Last-Event-ID", "Go on after the event of this number.", 18))
    return found


def _header(name: str, text: str, longest: int) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": "^[!-~]+$"}
    if name == "Last-Event-ID":
        schema["pattern"] = "^[0-9]+$"
    return {"name": name, "in": "header", "description": text, "schema": schema}


def _answer(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    text = HTTPStatus(operation.status).phrase
    if operation.media != JSON:
        return {"description": text, "content": {operation.media: {"schema": {"type": "string"}}}}
    if operation.answer is None:
        return {"description": text}
    if operation.streams:
        return {
            "description": "Server-sent events. `data` of each is one of these.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "x-data": schemas[operation.answer]}},
        }
    return {"description": text, "content": {JSON: {"schema": schemas[operation.answer]}}}


def _version() -> str:
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "0"
