"""Who may do what over gRPC: keys, roles, orgs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import message_factory

from holdfast import WorkflowContext, workflow
from holdfast.contract.keys import CreateKey, RevokeKey
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.conftest import OpenEngine
from tests.grpc_server import Caller, grpc_api, make_key

KEYS = AuthSettings(mode=AuthMode.KEYS)


@workflow
async def waits(ctx: WorkflowContext) -> str:
    return await ctx.wait_for_signal("go", str)


def unary() -> Iterator[tuple[str, Any]]:
    for service in pb.DESCRIPTOR.services_by_name.values():
        for method in service.methods:
            if not method.client_streaming:
                yield method.name, message_factory.GetMessageClass(method.input_type)


async def test_every_rpc_needs_a_key(engine: OpenEngine):
    """Without one, and with one that is wrong in any way, all of them are UNAUTHENTICATED, whatever they carry."""
    opened = await engine(workflows=[waits])
    key = await make_key(opened, Role.ADMIN)
    async with grpc_api(opened, auth=AuthSettings(mode=AuthMode.KEYS, failures_per_minute=1_000)) as (server, _):
        for wrong in (None, "x", "hf_x", key[:-1], key + "x", key.swapcase()):
            async with Caller(server.address, wrong) as caller:
                for name, cls in unary():
                    assert ("UNAUTHENTICATED", "unauthenticated") == await caller.refusal(name, cls()), (name, wrong)
                assert ("UNAUTHENTICATED", "unauthenticated") == await caller.session().end()


async def test_two_keys_in_one_call_are_refused(engine: OpenEngine):
    """Neither of them wins."""
    opened = await engine(workflows=[waits])
    key = await make_key(opened, Role.ADMIN)
    async with grpc_api(opened, auth=KEYS) as (server, _), Caller(server.address, key) as call:
        twice = [("authorization", f"Bearer {key}")]
        told = await call.refusal("ListWorkflows", pb.ListWorkflowsRequest(), metadata=twice)
        assert ("INVALID_ARGUMENT", "ambiguous_credentials") == told


ALLOWED = {
    Role.ADMIN: {"read", "write", "work"},
    Role.WRITER: {"read", "write"},
    Role.READER: {"read"},
    Role.WORKER: {"work"},
}
NEEDS = {
    "StartWorkflow": "write",
    "SignalWithStartWorkflow": "write",
    "SignalWorkflow": "write",
    "CancelWorkflow": "write",
    "TerminateWorkflow": "write",
    "ResolvePromise": "write",
    "RejectPromise": "write",
    "PublishEvent": "write",
    "UpdateWorkflow": "write",
    "QueryWorkflow": "read",
    "GetWorkflow": "read",
    "GetResult": "read",
    "GetHistory": "read",
    "ListWorkflows": "read",
    "StartTask": "write",
    "GetTask": "read",
    "ListTasks": "read",
    "CompleteTask": "write",
    "FailTask": "write",
    "ReadHistory": "work",
    "WorkerSession": "work",
}


@pytest.mark.parametrize("role", list(Role))
async def test_role_decides_what_a_key_may_do(engine: OpenEngine, role: Role):
    """Every RPC that there is, with every role: allowed, or PERMISSION_DENIED."""
    methods = {method.name for service in pb.DESCRIPTOR.services_by_name.values() for method in service.methods}
    assert methods == set(NEEDS)
    opened = await engine(workflows=[waits])
    key = await make_key(opened, role)
    async with grpc_api(opened, auth=KEYS) as (server, _), Caller(server.address, key) as call:
        for name, cls in unary():
            try:
                told = await call.refusal(name, cls())
            except AssertionError:
                told = ("OK", "")
            assert (told == ("PERMISSION_DENIED", "forbidden")) is (NEEDS[name] not in ALLOWED[role]), (name, told)
        stream = call.session()
        if "work" in ALLOWED[role]:
            assert (await stream.open()).session
            stream.call.cancel()
        else:
            await stream.write(pb.WorkerMessage(open=pb.OpenSession(host="h")))
            assert ("PERMISSION_DENIED", "forbidden") == await stream.end()


async def test_key_decides_the_org(engine: OpenEngine):
    """Another org's execution is as unknown as none; naming another org is refused alike for any name."""
    opened = await engine(workflows=[waits])
    mine, theirs = await make_key(opened, Role.ADMIN), await make_key(opened, Role.ADMIN, "other")
    async with (
        grpc_api(opened, auth=KEYS) as (server, _),
        Caller(server.address, mine) as call,
        Caller(server.address, theirs) as stranger,
    ):
        started = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="waits", workflow_id="w"))

        real = pb.GetWorkflowRequest(workflow_execution_id=started.workflow_execution_id)
        assert ("NOT_FOUND", "execution_not_found") == await stranger.refusal("GetWorkflow", real)
        for org in ("default", "nothing"):
            named = pb.GetWorkflowRequest(org_id=org, workflow_execution_id=started.workflow_execution_id)
            assert ("NOT_FOUND", "org_not_found") == await stranger.refusal("GetWorkflow", named)
        assert ("NOT_FOUND", "promise_not_found") == await stranger.refusal(
            "ResolvePromise", pb.ResolvePromiseRequest(promise_id=f"{started.workflow_execution_id}:p")
        )


async def test_stream_of_a_revoked_key_ends(engine: OpenEngine):
    """An open worker stream is closed soon after its key has ended."""
    opened = await engine(workflows=[waits])
    made = await opened._local.keys.create(CreateKey(org="default", name="w", role=Role.WORKER))
    async with grpc_api(opened, auth=KEYS) as (server, _), Caller(server.address, made.text) as call:
        stream = call.session()
        await stream.open()

        await opened._local.keys.revoke(RevokeKey(org="default", key_id=made.key.id))

        assert ("UNAUTHENTICATED", "unauthenticated") == await asyncio.wait_for(stream.end(), 5)
