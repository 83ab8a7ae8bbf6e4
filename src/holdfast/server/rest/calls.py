"""One call of an operation, as its handler sees it: everything checked and decoded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Any, TypeVar

from holdfast.contract.keys import Principal
from holdfast.errors import InvalidRequest
from holdfast.server.engine_api import EngineApi
from holdfast.server.operation import Operation
from holdfast.server.rest.list_streams import ListStreams

T = TypeVar("T")


class Call:
    """`body` and `query` are the structs the operation names. `key` is the header `Idempotency-Key`."""

    __slots__ = (
        "address",
        "body",
        "engine_api",
        "key",
        "last_event_id",
        "lists",
        "operation",
        "org",
        "path",
        "principal",
        "query",
    )

    def __init__(
        self,
        *,
        operation: Operation,
        engine_api: EngineApi,
        lists: ListStreams,
        principal: Principal | None,
        org: str,
        path: dict[str, str],
        body: Any,
        query: Any,
        key: str | None,
        last_event_id: str | None,
        address: str,
    ) -> None:
        self.operation = operation
        self.engine_api = engine_api
        self.lists = lists
        self.principal = principal
        self.org = org
        self.path = path
        self.body = body
        self.query = query
        self.key = key
        self.last_event_id = last_event_id
        self.address = address

    @property
    def execution_id(self) -> str:
        return self.path["workflow_execution_id"]

    def number(self, name: str) -> int:
        """A number in the path."""
        text = self.path[name]
        if not (text.isascii() and text.isdigit()) or len(text) > 18:
            raise InvalidRequest(f"{name} must be a positive integer, not {text!r:.50}", field=name)
        return int(text)

    def request_id(self) -> str | None:
        """`request_id`, `idempotency_key` and the header mean the same."""
        given = {
            value
            for value in (self.key, getattr(self.body, "request_id", None), getattr(self.body, "idempotency_key", None))
            if value is not None
        }
        if len(given) > 1:
            raise InvalidRequest(
                "idempotency_key, request_id and the header Idempotency-Key mean the same: give one of them",
                field="idempotency_key",
            )
        return given.pop() if given else None


class Stream:
    """An answer that comes in pieces. `frames` gives them ready to be sent."""

    __slots__ = ("frames",)

    def __init__(self, frames: AsyncIterator[bytes]) -> None:
        self.frames = frames

    async def close(self) -> None:
        """It is not wanted after all."""
        if isinstance(self.frames, AsyncGenerator):
            await self.frames.aclose()


async def within(waiting: Awaitable[T], seconds: float) -> T | None:
    """What is waited for, or None when it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await waiting
    except TimeoutError:
        return None
