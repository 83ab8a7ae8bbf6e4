"""A server with a workflow or two, and keys for every role."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from holdfast import Engine, WorkflowContext, query, signal, update, workflow
from tests.conftest import QUICK
from tests.rest_server import ApiClient, rest_server


@workflow(kind="chatbot-conversation")
async def conversation(ctx: WorkflowContext, given: Any) -> int:
    """Counts messages until one says `end`."""
    turns = 0
    while True:
        message = await ctx.wait_for_signal("message", dict)
        turns += 1
        ctx.state["turns"] = turns
        if message.get("end"):
            return turns


@workflow(kind="asks")
async def asks(ctx: WorkflowContext, given: Any) -> Any:
    return await ctx.promise("answer")


@workflow(kind="listens")
async def listens(ctx: WorkflowContext, given: Any) -> Any:
    return await ctx.wait_for_event("order", where="input.id == 7")


@workflow(kind="hears")
async def hears(ctx: WorkflowContext, given: Any) -> str:
    await ctx.wait_for_broadcast("closing")
    return "heard"


@workflow(kind="basket")
class Basket:
    def __init__(self) -> None:
        self.items: list[str] = []
        self.done = False

    async def run(self, ctx: WorkflowContext) -> list[str]:
        await ctx.wait_until(lambda: self.done)
        return self.items

    @query
    def content(self) -> list[str]:
        return self.items

    @update
    async def add(self, item: str) -> int:
        if not item:
            raise ValueError("no item")
        self.items.append(item)
        return len(self.items)

    @signal
    def finish(self) -> None:
        self.done = True


WORKFLOWS: list[Any] = [conversation, asks, listens, hears, Basket]


@pytest.fixture
async def running(database_url: str) -> AsyncIterator[Engine]:
    async with Engine(database_url, workflows=WORKFLOWS, config=QUICK) as engine:
        yield engine


@pytest.fixture
async def api(running: Engine) -> AsyncIterator[ApiClient]:
    async with rest_server(running) as opened:
        yield opened


@pytest.fixture
async def open_api(running: Engine) -> AsyncIterator[Callable[..., Any]]:
    """Further doors on the same engine."""
    async with AsyncExitStack() as opened:

        async def another(**options: Any) -> ApiClient:
            return await opened.enter_async_context(rest_server(running, **options))

        yield another
