"""A commit whose answer is lost while nobody can be asked: callers are told so, and the truth comes later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import EngineConfig, StoreConfig, WorkflowContext, workflow
from holdfast.errors import OutcomeUnknown, StorageBusy
from holdfast.store.postgres import transactions
from holdfast.store.postgres.commit_markers import CommitMarkers
from tests.conftest import SECRET, OpenEngine, until

HASTY = EngineConfig(store=StoreConfig(busy_deadline_s=0.2), secret_key=SECRET)


@workflow
async def echo(ctx: WorkflowContext, word: str) -> str:
    return word


class Outage:
    """Nobody can be asked about the last transaction while it lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.over = asyncio.Event()
        self.asked = 0
        stands = CommitMarkers.stands

        async def ask(commit_markers: CommitMarkers, connection: Any, number: int) -> bool:
            self.asked += 1
            if not self.over.is_set():
                raise ConnectionResetError("nobody is there")
            return await stands(commit_markers, connection, number)

        monkeypatch.setattr(CommitMarkers, "stands", ask)
        monkeypatch.setattr(transactions, "_ASK_AT_LEAST_S", 0.2)


class CutOff:
    """The writer's connection, which is lost when it commits: before the server has heard of it, or after."""

    def __init__(self, connection: Any, *, committed: bool) -> None:
        self._connection = connection
        self._committed = committed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, query: str, *args: Any) -> Any:
        if query != "COMMIT":
            return await self._connection.execute(query, *args)
        if self._committed:
            await self._connection.execute(query)
        raise ConnectionResetError("lost while it committed")


def cut_off(engine: Any, *, committed: bool) -> None:
    writer = engine.storage._writer.transactions
    writer._connection = CutOff(writer._connection, committed=committed)


@pytest.mark.parametrize("committed", [True, False])
async def test_callers_are_told_and_the_truth_comes_later(
    committed: bool, postgres_url: str, engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
):
    """With the same request id the same call finds out; it counts once in both cases."""
    node = await engine(url=postgres_url, config=HASTY, workflows=[echo])
    outage = Outage(monkeypatch)
    cut_off(node, committed=committed)

    with pytest.raises(OutcomeUnknown, match="same request id"):
        await node.client.start_workflow(echo, "hello", workflow_id="w", idempotency_key="k")
    await until(lambda: outage.asked > 2)
    outage.over.set()

    handle = await _repeated(lambda: node.client.start_workflow(echo, "hello", workflow_id="w", idempotency_key="k"))
    assert await handle.result() == "hello"
    assert len((await node.client.list_workflows()).items) == 1


async def _repeated(call: Callable[[], Awaitable[Any]]) -> Any:
    """A call may come to its deadline before the database is asked again."""
    while True:
        try:
            return await call()
        except StorageBusy:
            await asyncio.sleep(0)


@workflow
async def nap(ctx: WorkflowContext) -> str:
    await ctx.sleep(0.3)
    return "rested"


@pytest.mark.parametrize("committed", [True, False])
async def test_services_live_through_it(
    committed: bool,
    postgres_url: str,
    engine: OpenEngine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    """Whoever fires timers is told, too, that nobody knows: timers fire all the same, this one and the next."""
    node = await engine(url=postgres_url, config=HASTY, workflows=[nap])
    first = await node.client.start_workflow(nap)
    await until(lambda: _has_timer(node, first))
    outage = Outage(monkeypatch)
    cut_off(node, committed=committed)
    await until(lambda: "asking until it answers" in caplog.text)
    outage.over.set()

    assert await first.result(timeout=10) == "rested"
    second = await node.client.start_workflow(nap)
    assert await second.result(timeout=10) == "rested"


async def _has_timer(node: Any, handle: Any) -> bool:
    return any(event.type == "TIMER_STARTED" for event in await handle.history())
