"""A gRPC door on an engine of the test, and a plain way to call it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Self

import grpc
from google.protobuf import message_factory

from holdfast import Engine, ServerConfig
from holdfast.api.auth import AuthSettings, open_authenticator
from holdfast.api.grpc.server import GrpcServer
from holdfast.api.grpc.settings import GrpcSettings
from holdfast.api.nouns import Nouns
from holdfast.model.keys import Role
from holdfast.model.tokens import execution_key
from holdfast.wire.grpc import holdfast_pb2 as pb

BRIEF = ServerConfig(shutdown_grace_s=0.3)
"""Most tests do not wait for workers that hold something when their server goes."""
DISPATCH = "holdfast.v1.WorkflowDispatch"
WORKERS = "holdfast.v1.WorkerService"


def nouns_of(engine: Engine) -> Nouns:
    local = engine._local
    return Nouns(
        api=local.api,
        workers=local.workers,
        upkeep=local.upkeep,
        feeds=None,  # type: ignore[arg-type]  # this door does not use them
        keys=local.keys,
    )


async def open_server(
    engine: Engine, *, auth: AuthSettings | None = None, settings: GrpcSettings | None = None
) -> GrpcServer:
    guard = await open_authenticator(engine._local.keys, auth)
    server = GrpcServer(
        nouns_of(engine),
        guard,
        settings or GrpcSettings(port=0, common=BRIEF),
        token_key=lambda org, execution_id: execution_key(engine._secret(), org, execution_id),
    )
    await server.start()
    return server


async def make_key(engine: Engine, role: Role, org: str = "default") -> str:
    made = await engine.keys.create(org=org, name=f"{org} {role}", role=role)
    return made.text


class Caller:
    """Calls a server. `key` is an API key."""

    def __init__(self, target: str, key: str | None = None) -> None:
        self.channel = grpc.aio.insecure_channel(target, [("grpc.max_send_message_length", -1)])
        self.metadata = [] if key is None else [("authorization", f"Bearer {key}")]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()

    async def __call__(self, name: str, request: Any, *, metadata: Iterable[tuple[str, Any]] = ()) -> Any:
        service = pb.DESCRIPTOR.services_by_name["WorkerService" if name == "ReadHistory" else "WorkflowDispatch"]
        answer = message_factory.GetMessageClass(service.methods_by_name[name].output_type)
        call = self.channel.unary_unary(
            f"/{service.full_name}/{name}", lambda message: message.SerializeToString(), answer.FromString
        )
        return await call(request, metadata=[*self.metadata, *metadata], timeout=20)

    async def refusal(self, name: str, request: Any, **options: Any) -> tuple[str, str]:
        """The status and the code with which a call is refused."""
        try:
            await self(name, request, **options)
        except grpc.aio.AioRpcError as error:
            return told(error)
        raise AssertionError(f"{name} was not refused")

    def session(self, *, metadata: Iterable[tuple[str, Any]] = ()) -> WorkerStream:
        start = self.channel.stream_stream(
            f"/{WORKERS}/WorkerSession", lambda message: message.SerializeToString(), pb.ServerMessage.FromString
        )
        return WorkerStream(start(metadata=[*self.metadata, *metadata]))


def told(error: grpc.aio.AioRpcError) -> tuple[str, str]:
    trailer = dict(error.trailing_metadata() or ())
    return error.code().name, str(trailer.get("holdfast-code", ""))


class WorkerStream:
    """A worker's stream, by hand."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.number = 0
        self.received = 0

    async def open(self, **fields: Any) -> pb.SessionOpened:
        defaults = {"host": "h", "pid": 1, "queues": ["default"], "turn_slots": 5, "task_slots": 5, "lease_seconds": 5}
        await self.write(pb.WorkerMessage(open=pb.OpenSession(**{**defaults, **fields})))
        return (await self.read()).opened

    async def write(self, message: pb.WorkerMessage) -> None:
        await self.call.write(message)

    async def ask(self, *requests: pb.Request) -> None:
        self.number += 1
        await self.write(pb.WorkerMessage(number=self.number, received=self.received, requests=requests))

    async def read(self) -> pb.ServerMessage:
        message = await asyncio.wait_for(self.call.read(), 10)
        if message is grpc.aio.EOF:
            code, trailer = await self.call.code(), dict(await self.call.trailing_metadata() or ())
            raise EndOfStream(code.name, str(trailer.get("holdfast-code", "")))
        self.received = max(self.received, message.number)
        return message

    async def work(self) -> pb.Work:
        """The next piece of work; only one is expected in its message."""
        while True:
            message = await self.read()
            if message.work:
                (found,) = message.work
                return found

    async def answer(self) -> pb.Answer:
        while True:
            message = await self.read()
            if message.answers:
                (found,) = message.answers
                return found

    async def end(self) -> tuple[str, str]:
        """Read to the end: the status and the code."""
        try:
            while True:
                await self.read()
        except EndOfStream as ended:
            return ended.args[0], ended.args[1]
        except grpc.aio.AioRpcError as error:
            return told(error)


class EndOfStream(Exception):
    """Status and code."""


@asynccontextmanager
async def door(engine: Engine, **options: Any) -> AsyncIterator[tuple[GrpcServer, Caller]]:
    server = await open_server(engine, **options)
    try:
        async with Caller(server.address) as caller:
            yield server, caller
    finally:
        await server.stop()
