"""A plain client that knows nothing but the address: reflection and health."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from holdfast import Engine, WorkflowContext, workflow
from holdfast.model.keys import Role
from holdfast.server.auth import AuthMode, AuthSettings
from tests.conftest import OpenEngine
from tests.grpc_server import Caller, grpc_api, make_key


@workflow(kind="chatbot-conversation")
async def chatbot(ctx: WorkflowContext, opening: dict) -> list[str]:
    heard = [(await ctx.wait_for_signal("message", dict))["text"]]
    while heard[-1] != "bye":
        heard.append((await ctx.wait_for_signal("message", dict))["text"])
    return heard


class PlainClient:
    """As grpcurl does it: the services, methods and messages are asked of the server. In a thread of its own."""

    def __init__(self, target: str) -> None:
        self.channel = grpc.insecure_channel(target)
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = DescriptorPool(self.database)

    def call(self, path: str, **fields: Any) -> dict[str, Any]:
        service, _, name = path.rpartition("/")
        method = self.pool.FindServiceByName(service).FindMethodByName(name)
        request = message_factory.GetMessageClass(method.input_type)
        answer = message_factory.GetMessageClass(method.output_type)
        start = self.channel.unary_unary(f"/{path}", request.SerializeToString, answer.FromString)
        return json_format.MessageToDict(
            start(request(**fields), timeout=10),
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )


def drive(target: str) -> None:
    """The conversation of the first source document, as it shows it."""
    client = PlainClient(target)
    assert {"holdfast.v1.WorkflowDispatch", "holdfast.v1.WorkerService", "grpc.health.v1.Health"} <= set(
        client.database.get_services()
    )
    user = {
        "org_id": "default",
        "workflow_id": "conversation:123",
        "workflow_kind": "chatbot-conversation",
        "workflow_input": json.dumps({"conversation_id": "123"}).encode(),
        "queue": "default",
        "signal_name": "message",
    }
    dispatch = "holdfast.v1.WorkflowDispatch"
    first = client.call(
        f"{dispatch}/SignalWithStartWorkflow", **user, signal_value=b'{"text": "hello"}', metadata={"tier": "gold"}
    )
    again = client.call(f"{dispatch}/SignalWithStartWorkflow", **user, signal_value=b'{"text": "still there?"}')
    sent = client.call(
        f"{dispatch}/SignalWorkflow",
        org_id="default",
        workflow_execution_id=first["workflow_execution_id"],
        signal_name="message",
        signal_value=b'{"text": "bye"}',
    )
    ended = client.call(f"{dispatch}/GetResult", workflow_execution_id=first["workflow_execution_id"], wait_seconds=10)
    client.channel.close()

    assert (True, "2") == (first["workflow_created"], first["signal_event_sequence"])
    assert (False, first["workflow_execution_id"]) == (again["workflow_created"], again["workflow_execution_id"])
    assert int(sent["signal_event_sequence"]) > int(again["signal_event_sequence"]) > 2
    assert "COMPLETED" == ended["status"]


async def test_conversation_by_a_client_that_only_knows_the_address(engine: OpenEngine):
    """Signal-with-start twice and a signal: one execution that hears all three, called by reflection."""
    async with grpc_api(await engine(workflows=[chatbot])) as (server, _):
        await asyncio.to_thread(drive, server.address)


async def health(call: Caller, service: str = "") -> int:
    check = call.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    return int((await check(health_pb2.HealthCheckRequest(service=service), timeout=5)).status)


async def test_health_is_told_to_everybody(engine: OpenEngine):
    """Without a key, for the server and for each of its services."""
    opened = await engine()
    await make_key(opened, Role.ADMIN)
    async with grpc_api(opened, auth=AuthSettings(mode=AuthMode.KEYS)) as (_, call):
        for service in ("", "holdfast.v1.WorkflowDispatch", "holdfast.v1.WorkerService"):
            assert health_pb2.HealthCheckResponse.SERVING == await health(call, service)


async def test_reflection_needs_a_key_where_there_are_keys(engine: OpenEngine):
    """UNAUTHENTICATED for who has none."""
    from grpc_reflection.v1alpha import reflection_pb2

    opened: Engine = await engine()
    await make_key(opened, Role.ADMIN)
    async with grpc_api(opened, auth=AuthSettings(mode=AuthMode.KEYS)) as (_, call):
        show = call.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in show(iter([reflection_pb2.ServerReflectionRequest(list_services="")])):
                pass
        assert grpc.StatusCode.UNAUTHENTICATED == caught.value.code()
