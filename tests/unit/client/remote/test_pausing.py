"""A worker elsewhere that somebody pauses: it takes nothing, also after its connection was lost."""

from __future__ import annotations

from holdfast import WorkerConfig, WorkflowContext, task, workflow
from holdfast.assembly import RemoteWorker
from tests.conftest import OpenEngine, until
from tests.grpc_server import open_server
from tests.tcp_proxy import TcpProxy

QUICK = WorkerConfig(lease_s=5.0, shutdown_grace_s=0.5)


@task
async def double(number: int) -> int:
    return 2 * number


@workflow
async def doubles(ctx: WorkflowContext, number: int) -> int:
    return await ctx.task(double, number)


def worker(url: str) -> RemoteWorker:
    return RemoteWorker(url, workflows=[doubles], tasks=[double], config=QUICK)


async def test_a_remote_worker_is_paused_by_its_session(engine: OpenEngine):
    """Its own pause and the one that was ordered are two: one does not end the other."""
    opened = await engine()
    server = await open_server(opened)
    try:
        async with worker(server.url) as remote:
            await opened.client.pause_worker(remote.session)
            handle = await opened.client.start_workflow("doubles", 4)
            await remote.pause()
            await remote.resume()
            assert "PENDING" == await handle.status()
            await opened.client.resume_worker(remote.session)
            assert 8 == await handle.result(timeout=20)
    finally:
        await server.stop()


async def test_a_broken_connection_does_not_end_a_pause(engine: OpenEngine):
    """The same session goes on, and still takes nothing."""
    opened = await engine()
    server = await open_server(opened)
    try:
        async with TcpProxy(server.port) as proxy, worker(f"grpc://127.0.0.1:{proxy.port}") as remote:
            await opened.client.pause_worker(remote.session)
            proxy.cut()
            await until(lambda: remote.connected)
            handle = await opened.client.start_workflow("doubles", 4)
            assert "PENDING" == await handle.status()
            await opened.client.resume_worker(remote.session)
            assert 8 == await handle.result(timeout=20)
    finally:
        await server.stop()
