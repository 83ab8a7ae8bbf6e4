"""Every RPC of the description with whatever its messages can hold: refused in order, and the server lives on.

The messages come from the descriptors, so that a new RPC or field is tried without anybody thinking of it.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from holdfast import WorkflowContext, task, workflow
from holdfast.transport.grpc import holdfast_pb2 as pb
from tests.conftest import OpenEngine
from tests.grpc_server import Caller, grpc_api

SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", "20_261"))
TEXTS = [
    "",
    "default",
    "x",
    "waits",
    "greet",
    "\x00",
    "é" * 300,
    "a" * 70_000,
    "../../etc",
    "' OR 1=1 --",
    "\ud7ff",
    "1:1",
]
BYTES = [
    b"",
    b"null",
    b"{}",
    b"[]",
    b'"x"',
    b"\xff\xfe",
    b"{",
    b"[" * 5_000,
    b"1e400",
    b"NaN",
    b'"\\u0000"',
    b'"\\ud800"',
]
NUMBERS = [0, 1, -1, 2, 2**31 - 1, -(2**31), 100]
WIDE = [*NUMBERS, 2**63 - 1, -(2**63), 2**62]
FLOATS = [0.0, -1.0, 1e-9, 5.0, 1e308, float("inf"), float("-inf"), float("nan")]


@task
async def greet(name: str) -> str:
    return name


@workflow
async def waits(ctx: WorkflowContext, anything: Any = None) -> None:
    await ctx.wait_for_signal("go", str)


class Fuzz:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.texts = list(TEXTS)

    def message(self, descriptor: Descriptor, depth: int = 0) -> Any:
        made = message_factory.GetMessageClass(descriptor)()
        for field in descriptor.fields:
            if self.random.random() < (0.6 if depth < 3 else 0.1):
                self.fill(made, field, depth)
        return made

    def fill(self, made: Any, field: FieldDescriptor, depth: int) -> None:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            getattr(made, field.name)[self.random.choice(self.texts)] = self.random.choice(self.texts)
        elif field.message_type is not None and field.is_repeated:
            for _ in range(self.random.randint(0, 3)):
                getattr(made, field.name).append(self.message(field.message_type, depth + 1))
        elif field.message_type is not None:
            getattr(made, field.name).CopyFrom(self.message(field.message_type, depth + 1))
        elif field.is_repeated:
            getattr(made, field.name).extend(self.value(field) for _ in range(self.random.randint(0, 3)))
        else:
            setattr(made, field.name, self.value(field))

    def value(self, field: FieldDescriptor) -> Any:
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
                return self.random.choice(BYTES)
            case FieldDescriptor.CPPTYPE_STRING:
                return self.random.choice(self.texts)
            case FieldDescriptor.CPPTYPE_BOOL:
                return self.random.random() < 0.5
            case FieldDescriptor.CPPTYPE_DOUBLE:
                return self.random.choice(FLOATS)
            case FieldDescriptor.CPPTYPE_INT64:
                return self.random.choice(WIDE)
            case FieldDescriptor.CPPTYPE_INT32:
                return self.random.choice(NUMBERS)
        return self.random.choice([abs(number) % 2**32 for number in NUMBERS])

    def broken(self, data: bytes) -> bytes:
        """The same with a few bytes changed, missing or added."""
        made = bytearray(data or b"\x0a")
        for _ in range(self.random.randint(1, 4)):
            made[self.random.randrange(len(made))] = self.random.randrange(256)
        return bytes(made[: self.random.randint(1, len(made))])


async def ask(call: Caller, path: str, data: bytes) -> str:
    try:
        await call.channel.unary_unary(path)(data, timeout=5)
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


BAD = {"INTERNAL", "UNKNOWN", "DATA_LOSS"}


@pytest.mark.slow
async def test_no_message_breaks_an_rpc(engine: OpenEngine, caplog: pytest.LogCaptureFixture):
    """No INTERNAL, no UNKNOWN, and nothing in the log about broken code."""
    fuzz = Fuzz(SEED)
    async with grpc_api(await engine(workflows=[waits], tasks=[greet])) as (_, call):
        started = await call("StartWorkflow", pb.StartWorkflowRequest(workflow_kind="waits", workflow_id="x"))
        fuzz.texts += [started.workflow_execution_id] * 3
        methods = [
            (f"/{service.full_name}/{method.name}", method.input_type)
            for service in pb.DESCRIPTOR.services_by_name.values()
            for method in service.methods
            if not method.client_streaming
        ]
        answers: dict[str, set[str]] = {path: set() for path, _ in methods}
        for _ in range(60):
            made = [(path, fuzz.message(cls).SerializeToString()) for path, cls in methods]
            made += [(path, fuzz.broken(data)) for path, data in made]
            # A wait for an end that does not come would only take long.
            kept = [(path, data) for path, data in made if not path.endswith(("GetResult", "UpdateWorkflow"))]
            got = await asyncio.gather(*(ask(call, path, data) for path, data in kept))
            for (path, data), status in zip(kept, got, strict=True):
                answers[path].add(status)
                assert status not in BAD, (SEED, path, data)
        again = pb.StartWorkflowRequest(workflow_kind="waits", workflow_id="afterwards")
        assert (await call("StartWorkflow", again)).workflow_created
    assert [] == [record.getMessage() for record in caplog.records if "broke" in record.getMessage()]
    assert all("INVALID_ARGUMENT" in statuses for path, statuses in answers.items() if statuses)


async def talk(call: Caller, fuzz: Fuzz) -> str:
    """One stream: opened in order, then whatever comes."""
    stream = call.session()
    opened = fuzz.random.random() < 0.8
    try:
        if opened:
            await stream.open(
                builds=[pb.Build(workflow_kind="waits", workflow_version="1", build="b")], task_kinds=["greet"]
            )
        for number in range(1, fuzz.random.randint(2, 8)):
            message = fuzz.message(pb.WorkerMessage.DESCRIPTOR)
            if opened and fuzz.random.random() < 0.9:
                message.ClearField("open")
                message.ClearField("part")
                message.number = number if message.requests else 0
                message.received = 0
            await stream.write(message)
        await stream.call.done_writing()
        return (await stream.end())[0]
    except grpc.aio.AioRpcError as error:
        # What this client says when it writes to a stream that the server has just ended.
        return "ENDED" if error.details() == "Internal error from Core" else str(error.code().name)
    except asyncio.InvalidStateError:
        return str((await stream.call.code()).name)
    except TimeoutError:
        stream.call.cancel()
        return "SILENT"


@pytest.mark.slow
async def test_no_message_breaks_a_workers_stream(engine: OpenEngine, caplog: pytest.LogCaptureFixture):
    """Streams end in order or with INVALID_ARGUMENT, and the next worker is served."""
    fuzz = Fuzz(SEED + 1)
    async with grpc_api(await engine()) as (_, call):
        for _ in range(30):
            statuses = await asyncio.gather(*(talk(call, fuzz) for _ in range(5)))
            assert not BAD & set(statuses), (SEED, statuses)
        stream = call.session()
        assert (await stream.open()).session
    assert [] == [record.getMessage() for record in caplog.records if "broke" in record.getMessage()]
