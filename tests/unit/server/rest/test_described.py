"""The server does what its description says: schemathesis asks it whatever that allows, and much that it does not.

Seeded, so that a failure comes back. With `HOLDFAST_EXAMPLES` more is asked of each operation, and every boundary of
every field is tried: some thousand requests, which take minutes.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from holdfast import Server, ServerConfig
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.server.operations import OPERATIONS
from holdfast.server.rest.openapi import openapi
from tests.conftest import QUICK
from tests.unit.server.rest.conftest import WORKFLOWS

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES", "6"))
STREAMS = [operation.name for operation in OPERATIONS if operation.streams]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

whole = schemathesis.openapi.from_dict(openapi())
whole.config.phases.coverage.enabled = "HOLDFAST_EXAMPLES" in os.environ
described = whole.exclude(operation_id=STREAMS)


KINDS = ["asks", "basket", "chatbot-conversation", "listens", "hears"]
IDS: list[str] = []


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server on a thread of its own: these tests block. It has an execution of each kind."""
    loop = asyncio.new_event_loop()
    server = Server(
        "sqlite://",
        workflows=WORKFLOWS,
        config=QUICK,
        server=ServerConfig(port=0, grpc_port=None),
        auth=AuthSettings(mode=AuthMode.DEV),
    )
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.open(), loop).result(20)
    for kind in KINDS:
        handle = asyncio.run_coroutine_threadsafe(server.client.start_workflow(kind), loop).result(20)
        IDS.append(handle.id)
    yield server.url
    asyncio.run_coroutine_threadsafe(server.shutdown(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def aim(case: Case) -> None:
    """At what there is: an id drawn at random would find nothing but that it is unknown."""
    given = case.path_parameters
    if "org" in given:
        given["org"] = "default"
    if "workflow_execution_id" in given:
        given["workflow_execution_id"] = IDS[len(str(given["workflow_execution_id"])) % len(IDS)]
    kind = case.body.get("workflow_kind") if isinstance(case.body, dict) else None
    if isinstance(case.body, dict) and isinstance(kind, str):
        case.body["workflow_kind"] = KINDS[len(kind) % len(KINDS)]


@pytest.mark.slow
@pytest.mark.sqlite_only("it is about what a server takes and answers, and asks one that outlives each of its tests")
@described.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_whatever_is_asked_is_answered_as_described(case: Case, url: str) -> None:
    for part in (case.query, case.body):
        if isinstance(part, dict) and "wait" in part:
            part["wait"] = 0
    aim(case)
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=20)
