"""A connection that stands while nobody answers on it, and nothing says so: calls are answered by their deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from holdfast import EngineConfig, StoreConfig, WorkflowContext, workflow
from holdfast.errors import OutcomeUnknown, StorageBusy
from tests.conftest import SECRET, OpenEngine, until
from tests.stores.test_postgres_commits import Script
from verification.chaos.proxy import Cut, Proxy
from verification.postgres import LocalPostgres
from verification.postgres_databases import SpareDatabases

pytestmark = pytest.mark.slow

DEADLINE_S = 1.5
# What docs/settings.md says that it may take longer.
LATE_S = 3.0
# A statement may take longer than a call: 6 s.
CONFIG = EngineConfig(
    store=StoreConfig(busy_deadline_s=DEADLINE_S, statement_timeout_s=1.0, synchronous="normal"), secret_key=SECRET
)


class Steps:
    """How often the step below was begun, and when it may end."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()


steps = Steps()


async def long_step() -> None:
    steps.begun += 1
    await steps.go_on.wait()


@workflow
async def with_a_step(ctx: WorkflowContext) -> str:
    await ctx.run(long_step)
    return "done"


@pytest.fixture
async def proxy(postgres_server: LocalPostgres) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_server.port) as made:
        yield made


@pytest.fixture
async def node(proxy: Proxy, postgres_server: LocalPostgres, engine: OpenEngine) -> AsyncIterator[Any]:
    """An engine that has worked, on connections that the proxy can silence."""
    databases = SpareDatabases(postgres_server.url)
    with databases.one() as url:
        made = await engine(url=proxy.url_of(url), config=CONFIG, workflows=[with_a_step])
        await made.client.publish_event("key", "before")
        yield made
        proxy.heal()
        await made.shutdown()
    databases.close()


async def _answered(call: Callable[[], Awaitable[Any]]) -> tuple[BaseException | None, float]:
    """What a call raises, and how long it has taken."""
    loop = asyncio.get_running_loop()
    begun_at = loop.time()
    try:
        await call()
    except (OutcomeUnknown, StorageBusy) as error:
        return error, loop.time() - begun_at
    return None, loop.time() - begun_at


async def kept(node: Any) -> list[Any]:
    return [view.data for view in await node.client.list_events("key", limit=100)]


async def test_a_write_on_a_silent_connection(node: Any, proxy: Proxy) -> None:
    """Nothing of it can have been written: that is said, and the next call works when the silence is over."""
    proxy.block()
    error, took_s = await _answered(lambda: node.client.publish_event("key", "refused"))
    proxy.heal()
    await node.client.publish_event("key", "after")

    assert isinstance(error, StorageBusy)
    assert DEADLINE_S * 0.9 < took_s < DEADLINE_S + LATE_S
    assert ["after", "before"] == await kept(node)


async def test_those_who_come_while_a_connection_is_silent(node: Any, proxy: Proxy) -> None:
    """Each by its own deadline, not after those before it."""
    proxy.block()

    async def later(pause_s: float) -> tuple[BaseException | None, float]:
        await asyncio.sleep(pause_s)
        return await _answered(lambda: node.client.publish_event("key", "refused"))

    answers = await asyncio.gather(*(later(number * 0.5) for number in range(6)))
    proxy.heal()

    assert {StorageBusy} == {type(error) for error, _ in answers}
    assert max(took_s for _, took_s in answers) < DEADLINE_S + LATE_S
    assert ["before"] == await kept(node)


@pytest.mark.parametrize("cut", [Cut.HELD_BEFORE, Cut.HELD_AFTER], ids=str)
async def test_a_commit_on_a_silent_connection(node: Any, proxy: Proxy, cut: Cut) -> None:
    """Nobody knows, so that is said; who asks with the same request id finds out. Those behind it were not even
    begun."""
    proxy.choose = Script(cut)

    async def publish() -> None:
        await node.client.publish_event("key", "doubtful", idempotency_key="k")

    first = asyncio.ensure_future(_answered(publish))
    await until(lambda: proxy.counts[cut])
    proxy.block()
    second = await _answered(lambda: node.client.publish_event("key", "refused"))
    error, took_s = await first
    proxy.heal()
    while (await _answered(publish))[0] is not None:
        pass

    assert isinstance(error, OutcomeUnknown)
    assert DEADLINE_S * 0.9 < took_s < DEADLINE_S + LATE_S
    assert isinstance(second[0], StorageBusy)
    assert second[1] < DEADLINE_S + LATE_S
    assert ["doubtful", "before"] == await kept(node)


async def test_finished_work_waits_as_long_as_it_takes(
    node: Any, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report behind a COMMIT that nobody answers has no deadline: it would only have to be done again."""
    monkeypatch.setattr(f"{__name__}.steps", Steps())
    handle = await node.client.start_workflow(with_a_step)
    await until(lambda: steps.begun)
    proxy.choose = Script(Cut.HELD_BEFORE)
    doubtful = asyncio.ensure_future(_answered(lambda: node.client.publish_event("key", "doubtful")))
    await until(lambda: proxy.counts[Cut.HELD_BEFORE])
    steps.go_on.set()
    refused, _ = await _answered(lambda: node.client.publish_event("key", "refused"))

    assert isinstance(refused, StorageBusy)
    assert isinstance((await doubtful)[0], OutcomeUnknown)
    assert "done" == await handle.result(timeout=30)
    assert 1 == steps.begun


async def test_a_read_on_a_silent_connection(node: Any, proxy: Proxy) -> None:
    await kept(node)
    proxy.block()
    error, took_s = await _answered(lambda: kept(node))
    proxy.heal()

    assert isinstance(error, StorageBusy)
    assert took_s < DEADLINE_S + LATE_S
    assert ["before"] == await kept(node)
