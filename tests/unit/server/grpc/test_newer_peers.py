"""A worker or a server that is newer than the other: unknown fields and kinds are passed over, unknown commands are
refused and the execution is parked until both know them."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from google.protobuf.message import Message

from holdfast import Engine, RemoteWorker, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.client.remote.workers import RemoteWorkers
from holdfast.errors import EventTooNew
from holdfast.model.events import EVENT_TYPES, StepCompleted
from holdfast.transport.grpc import events as wire_events
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc import reports
from holdfast.transport.grpc.payloads import record_bytes
from tests.conftest import OpenEngine, until
from tests.grpc_server import grpc_api, open_server

M = TypeVar("M", bound=Message)

# Field 9999, bytes: no message has it.
UNKNOWN = b"\xfa\xf0\x04\x05later"


@task
async def greet(name: str) -> str:
    return f"hello {name}"


@workflow
async def greets(ctx: WorkflowContext, name: str) -> str:
    await ctx.sleep(0.01)
    return await ctx.task(greet, name)


@workflow
async def greets_at_once(ctx: WorkflowContext, name: str) -> str:
    return await ctx.task(greet, name)


def make() -> Any:
    """The same workflow each time, as a process that starts would have it."""

    @workflow
    async def again(ctx: WorkflowContext, name: str) -> str:
        return await ctx.task(greet, name)

    return again


def newer(message: M) -> M:
    """As a newer version may send it: with a field more, in each part."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                newer(part)
    message.MergeFromString(UNKNOWN)
    assert message.SerializeToString().endswith(UNKNOWN)
    return message


async def test_server_passes_over_fields_it_does_not_know(engine: OpenEngine):
    """In calls, in a worker's opening and in its reports, also in what those have as JSON."""
    async with await engine(workflows=[greets], tasks=[greet]):
        pass
    builds = [newer(pb.Build(workflow_kind="greets", workflow_version="1", build="b"))]
    async with grpc_api(await engine()) as (_, call):
        stream = call.session()
        opening = pb.OpenSession(host="h", pid=1, queues=["default"], turn_slots=5, lease_seconds=5, builds=builds)
        await stream.write(newer(pb.WorkerMessage(open=opening)))
        assert (await stream.read()).opened.session
        request = pb.StartWorkflowRequest(workflow_kind="greets", workflow_id="w", workflow_input=b'"Ann"')
        execution_id = (await call("StartWorkflow", newer(request))).workflow_execution_id

        turn = (await stream.work()).turn
        turns = b'[{"up_to": 1, "mood": 1, "commands": [{"type": "complete_workflow", "result": 7, "colour": "red"}]}]'
        report = pb.CompleteTurn(
            workflow_execution_id=execution_id, token=turn.token, base_sequence=turn.last_sequence, turns=turns
        )
        await stream.ask(newer(pb.Request(id=1, complete_turn=report)))

        assert "recorded" == (await stream.answer()).turn.verdict
        ended = await call("GetResult", pb.GetResultRequest(workflow_execution_id=execution_id, wait_seconds=5))
        assert b"7" == ended.result


async def test_worker_passes_over_what_it_does_not_know(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch):
    """Fields, work of another kind, answers to nothing: it goes on with the rest."""
    arrived = RemoteWorkers.arrived

    def arrived_newer(self: RemoteWorkers, message: pb.ServerMessage) -> None:
        message.work.insert(0, pb.Work())
        message.answers.insert(0, pb.Answer(id=2**40))
        arrived(self, newer(message))

    monkeypatch.setattr(RemoteWorkers, "arrived", arrived_newer)
    api = await engine()
    server = await open_server(api)
    try:
        async with RemoteWorker(server.url, workflows=[greets], tasks=[greet]):
            handle = await api.client.start_workflow(greets, "Ann")
            assert "hello Ann" == await handle.result(timeout=20)
    finally:
        await server.stop()


async def test_command_that_the_server_does_not_know_parks_the_execution(
    engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
):
    """It is stuck as `unsupported`; other work is done; resumed with a server that knows the command, it goes on."""
    api = await engine()
    server = await open_server(api)

    def newer_bytes(record: Any) -> bytes:
        return record_bytes(record).replace(b'"start_timer"', b'"dance"')

    try:
        async with RemoteWorker(server.url, workflows=[greets, greets_at_once], tasks=[greet]):
            with monkeypatch.context() as patched:
                patched.setattr(reports, "record_bytes", newer_bytes)
                handle = await api.client.start_workflow(greets, "Ann")
                await until(lambda: is_stuck(api, handle.id))
                other = await api.client.start_workflow(greets_at_once, "Bob")
                assert "hello Bob" == await other.result(timeout=20)
            stuck = (await handle.describe()).stuck
            assert stuck is not None
            assert "unsupported" == stuck.code
            assert "upgrade the server" in stuck.message

            await handle.resume()
            assert "hello Ann" == await handle.result(timeout=20)
    finally:
        await server.stop()


async def test_execution_that_an_older_worker_can_not_read_continues_with_a_newer_one(
    engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
):
    """Though the workflow is the same: what Holdfast knows is part of its build, so nobody waits for the next try."""
    api = await engine()
    server = await open_server(api)

    def refuse(type_name: str, version: int, data: bytes) -> Any:
        raise EventTooNew(f"event type {type_name} is not known to this Holdfast: upgrade this program")

    try:
        with monkeypatch.context() as older:
            older.setattr(wire_events, "decode_body", refuse)
            async with RemoteWorker(server.url, workflows=[make()], tasks=[greet]):
                handle = await api.client.start_workflow("again", "Ann")
                await until(lambda: is_stuck(api, handle.id))
        stuck = (await handle.describe()).stuck
        assert stuck is not None
        assert "upgrade this program" in stuck.message

        monkeypatch.setitem(EVENT_TYPES, "LATER", StepCompleted)
        async with RemoteWorker(server.url, workflows=[make()], tasks=[greet]):
            assert "hello Ann" == await handle.result(timeout=20)
    finally:
        await server.stop()


async def is_stuck(api: Engine, execution_id: str) -> bool:
    return await api.client.workflow(execution_id).status() is WorkflowStatus.STUCK
