"""`contract.operation.Api` over gRPC: any operation of the table, by one procedure.

As over HTTP, a call that changes something carries a request id, so that it may be sent again after a lost connection.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from typing import Any, Final, TypeVar

import grpc

from holdfast.client.remote.caller import FIRST_PAUSE_S, LONGEST_PAUSE_S, new_request_id
from holdfast.client.remote.http_api import refuse_using, without_key
from holdfast.client.remote.links import error_of
from holdfast.contract.operation import GET, OPERATIONS, Operation, Request
from holdfast.errors import ServerUnreachable, Unsupported
from holdfast.wire.grpc.method_codec import MethodCodec, method_codec
from holdfast.wire.grpc.names import SERVICE_PATH

A = TypeVar("A")
TIMEOUT_S: Final = 30.0
RETRY_S: Final = 10.0


class GrpcApi:
    """`channel` is one of grpc.aio; `metadata` say who asks."""

    def __init__(self, channel: Any, metadata: list[tuple[str, str]]) -> None:
        self._channel = channel
        self._metadata = metadata
        self._methods: dict[type[Any], Any] = {}

    async def close(self) -> None:
        await self._channel.close()

    async def call(self, request: Request[A], using: Any = None) -> A:
        if using is not None:
            refuse_using()
        operation = OPERATIONS[type(request)]
        if operation.no_rpc:
            raise Unsupported(f"{operation.name} is not offered over gRPC: {operation.no_rpc}")
        codec = method_codec(operation)
        has_key = "request_id" in request.__struct_fields__
        made = new_request_id() if has_key and request.request_id is None else None  # type: ignore[attr-defined]
        repeatable = has_key or operation.method == GET or operation.repeatable
        data = await self._send(operation, codec, self._message(codec, request, made), repeatable=repeatable)
        answer: A = codec.read_answer(data)
        return without_key(answer) if made else answer

    async def stream(self, request: Request[A]) -> AsyncIterator[A]:
        operation = OPERATIONS[type(request)]
        codec = method_codec(operation)
        method = self._channel.unary_stream(
            f"{SERVICE_PATH}/{operation.rpc}",
            request_serializer=codec.request.SerializeToString,
            response_deserializer=codec.response.FromString,
        )
        try:
            async for message in method(codec.write_request(request), metadata=self._metadata):
                found: A = codec.read_answer(message)
                yield found
        except grpc.aio.AioRpcError as ended:
            raise error_of(ended) from None

    def _message(self, codec: MethodCodec, request: Any, made: str | None) -> Any:
        message = codec.write_request(request)
        if made is not None:
            codec.set_key(message, made)
        return message

    async def _send(self, operation: Operation, codec: MethodCodec, message: Any, *, repeatable: bool) -> Any:
        timeout_s = None if operation.waits else TIMEOUT_S
        give_up = time.monotonic() + RETRY_S
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await self._method(operation, codec)(message, timeout=timeout_s, metadata=self._metadata)
            except grpc.aio.AioRpcError as ended:
                error = error_of(ended)
                if not (repeatable and isinstance(error, ServerUnreachable)) or time.monotonic() + pause_s > give_up:
                    raise error from None
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads callers, no secret
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _method(self, operation: Operation, codec: MethodCodec) -> Any:
        found = self._methods.get(operation.request)
        if found is None:
            found = self._methods[operation.request] = self._channel.unary_unary(
                f"{SERVICE_PATH}/{operation.rpc}",
                request_serializer=codec.request.SerializeToString,
                response_deserializer=codec.response.FromString,
            )
        return found
