"""The table of operations is complete, and everything is made from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from openapi_spec_validator import validate

from holdfast.api.errors import STATUS, http_status
from holdfast.api.operations import BY_NAME, OPERATIONS
from holdfast.api.rest.handlers import HANDLERS
from holdfast.api.rest.openapi import openapi
from holdfast.api.rest.routing import Router
from holdfast.contract.operation import AuditedRequest, Request
from holdfast.contract.table import TABLE
from holdfast.errors import HoldfastError, MethodNotAllowed, RouteNotFound, _all_of


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(openapi()))
    return plain


def test_everything_the_contract_offers_is_in_the_table():
    """A request that is added to the contract needs a row, and a row is offered."""
    requests = {cls for cls in _derived(Request) if cls.__module__.startswith("holdfast.contract.")}
    assert requests - {AuditedRequest} == {row.request for row in TABLE}
    assert set(TABLE) == {operation.row for operation in OPERATIONS}


def _derived(cls: type) -> set[type]:
    return {found for sub in cls.__subclasses__() for found in (sub, *_derived(sub))}


def test_every_operation_is_described_and_every_description_is_an_operation(document):
    described = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert described == {(operation.method, operation.path, operation.name) for operation in OPERATIONS}


def test_the_description_is_valid_openapi(document):
    assert "3.1.0" == document["openapi"]
    validate(document)


def test_every_operation_has_a_handler():
    assert set(HANDLERS) == set(BY_NAME)


def test_examples_are_what_the_body_takes():
    for operation in OPERATIONS:
        if operation.example is not None:
            assert operation.body is not None, operation.name
            msgspec.json.decode(msgspec.json.encode(operation.example), type=operation.body)


def test_bodies_and_queries_refuse_what_they_do_not_know():
    for operation in OPERATIONS:
        for struct in (operation.body, operation.query):
            assert struct is None or struct.__struct_config__.forbid_unknown_fields, operation.name


def test_every_error_has_a_status():
    """From its own class or the nearest above; only what is no caller's business is a 500."""
    unknown = [cls.__name__ for cls in _all_of(HoldfastError) if http_status(cls.__new__(cls)) == 500]
    assert {"HoldfastError", "UnexpectedAnswer", "ScenarioError"} >= {
        name for name in unknown if name not in _scenario_errors()
    }
    assert STATUS[HoldfastError].status == 500


def _scenario_errors() -> set[str]:
    from holdfast.errors import ScenarioError

    return {cls.__name__ for cls in _all_of(ScenarioError)}


ROUTER = Router(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_found_by_its_path(operation):
    path = operation.path
    for name in operation.parameters:
        path = path.replace(f"{{{name}}}", f"a%2F{name}")
    found, values = ROUTER.find(operation.method, path.encode())

    assert (operation, {name: f"a/{name}" for name in operation.parameters}) == (found, values)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/api",
        "/api/",
        "/api/orgs",
        "/api/orgs//workflow-executions",
        "/api/orgs/x/workflow-executions/",
        "/api/orgs/x/workflow-executions/y/../z",
        "/api/orgs/x/workflow-executions/%2e%2e/signal/x",
        "/healthz/",
        "/healthz;x",
        "/HEALTHZ",
        "/etc/passwd",
    ],
)
def test_other_paths_are_not_found(path):
    with pytest.raises(RouteNotFound):
        ROUTER.find("GET", path.encode())


def test_another_method_is_told_which_there_are():
    with pytest.raises(MethodNotAllowed, match="GET, HEAD, POST"):
        ROUTER.find("PUT", b"/api/orgs/x/workflow-executions")
