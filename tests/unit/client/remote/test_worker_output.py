"""What tasks of a worker elsewhere say: it reaches whoever watches, once, whatever the network does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from holdfast import EngineConfig, TaskContext, WorkerConfig, WorkflowContext, task, workflow
from holdfast.assembly import RemoteWorker
from holdfast.config import Limits
from tests.conftest import QUICK, OpenEngine, until
from tests.grpc_server import open_server
from tests.tcp_proxy import TcpProxy

GO: list[asyncio.Event] = []
REFUSED: list[str] = []


@task
async def speaks(ctx: TaskContext, count: int) -> int:
    for number in range(count):
        ctx.emit(number)
        if number % 50 == 49:
            await asyncio.sleep(0.01)
    await GO[-1].wait()
    ctx.emit("last")
    return count


@task
def speaks_too_much(ctx: TaskContext) -> None:
    try:
        ctx.emit("x" * 200)
    except Exception as error:
        REFUSED.append(type(error).__name__)
    for number in range(30):
        ctx.emit(number)


@workflow
async def speaking(ctx: WorkflowContext, count: int) -> int:
    return await ctx.task(speaks, count)


@workflow
async def speaking_too_much(ctx: WorkflowContext) -> None:
    await ctx.task(speaks_too_much)


@pytest.fixture(autouse=True)
def go():
    GO.append(asyncio.Event())
    REFUSED.clear()
    return GO[-1]


@asynccontextmanager
async def working(api, port: int | None = None, **config: Any):
    server = await open_server(api)
    url = server.url if port is None else f"grpc://127.0.0.1:{port}"
    options = {"lease_s": 2.0, "shutdown_grace_s": 0.5} | config
    worker = RemoteWorker(
        url,
        workflows=[speaking, speaking_too_much],
        tasks=[speaks, speaks_too_much],
        config=WorkerConfig(**options),
    )
    try:
        async with worker:
            yield server
    finally:
        await server.stop()


async def test_a_remote_task_is_followed(engine: OpenEngine, go):
    """While it runs, and to its end; nothing is lost with the report."""
    api = await engine()
    async with working(api):
        handle = await api.client.start_workflow(speaking, 3)
        await until(lambda: api._local.store.task("default", handle.id, 1))
        updates = api.client.follow_task(handle.id, 1)
        heard = [await asyncio.wait_for(anext(updates), 10) for _ in range(4)]
        go.set()
        rest = [update async for update in updates]

    assert ["attempt", "output", "output", "output"] == [update.kind for update in heard]
    assert [("output", "last"), ("ended", None)] == [(update.kind, update.value) for update in rest]


async def test_the_limits_are_the_servers(engine: OpenEngine):
    """A worker elsewhere has no settings for them: it is told when its session is opened."""
    limits = Limits(output_chunk_bytes=100, output_chunks_per_task=10)
    api = await engine(config=EngineConfig(store=QUICK.store, limits=limits, secret_key=QUICK.secret_key))
    async with working(api):
        handle = await api.client.start_workflow(speaking_too_much)
        await handle.result(timeout=10)
        page = await api.client.task_output(handle.id, 1)

    assert ["PayloadTooLarge"] == REFUSED
    assert list(range(20, 30)) == [chunk.value for chunk in page.chunks]
    assert 30 == page.chunks[-1].seq


async def test_each_chunk_counts_once_when_connections_break(engine: OpenEngine, go):
    """What was on its way is sent again, and is not there twice."""
    api = await engine()
    server = await open_server(api)
    try:
        async with (
            TcpProxy(int(server.url.rpartition(":")[2])) as proxy,
            RemoteWorker(
                f"grpc://127.0.0.1:{proxy.port}",
                workflows=[speaking],
                tasks=[speaks],
                config=WorkerConfig(lease_s=5.0, shutdown_grace_s=0.5),
            ),
        ):
            handle = await api.client.start_workflow(speaking, 500)
            for said in (50, 200, 350):
                await until(partial(_has_said, api, handle.id, said))
                proxy.cut()
            go.set()
            await handle.result(timeout=20)
            page = await api.client.task_output(handle.id, 1, limit=1000)
    finally:
        await server.stop()

    assert [*range(500), "last"] == [chunk.value for chunk in page.chunks]
    assert list(range(1, 502)) == [chunk.seq for chunk in page.chunks]


async def _has_said(api, execution_id: str, count: int) -> bool:
    row = await api._local.store.task("default", execution_id, 1)
    return row is not None and row.output_seq >= count
