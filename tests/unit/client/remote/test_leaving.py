"""A worker whose server is about to stop: where there is another it goes there, with its tasks and without its turns
being lost; where there is none it reports what it can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ServerConfig, TaskContext, WorkerConfig, WorkflowContext, task, workflow
from holdfast.assembly import RemoteWorker
from holdfast.client.remote import workers as remote_workers
from holdfast.server.grpc.settings import GrpcSettings
from holdfast.server.grpc.worker_service import WorkerService
from tests.conftest import OpenEngine, until
from tests.grpc_server import BRIEF, open_server
from verification.invariants import check, read

RETRY_ON_OUTAGE = GrpcSettings(port=0, common=ServerConfig(shutdown_grace_s=600))
"""Longer than any test takes: what ends, ends for another reason."""
CONFIG = WorkerConfig(lease_s=3600.0, shutdown_grace_s=0.5)
RUNS: list[str] = []
GATES: dict[str, asyncio.Event] = {}


async def gated(what: str) -> str:
    RUNS.append(what)
    await GATES[what].wait()
    return what


@task
async def gated_task(ctx: TaskContext, what: str) -> int:
    await gated(what)
    return ctx.info.attempt


@workflow
async def at_work(ctx: WorkflowContext, what: str) -> int:
    return await ctx.task(gated_task, what)


@workflow
async def in_a_step(ctx: WorkflowContext, what: str) -> str:
    return await ctx.run(gated, what)


@pytest.fixture(autouse=True)
def gates() -> None:
    RUNS.clear()
    GATES.clear()
    GATES.update(task=asyncio.Event(), step=asyncio.Event())


def worker_of(*servers: Any) -> RemoteWorker:
    where = "grpc://" + ",".join(server.address for server in servers)
    return RemoteWorker(where, workflows=[at_work, in_a_step], tasks=[gated_task], config=CONFIG)


async def test_worker_moves_when_it_is_told(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch):
    """Its server would wait ten minutes and every pause is as long: the task goes with the worker, and is run once."""
    monkeypatch.setattr(remote_workers, "FIRST_PAUSE_S", 600.0)
    monkeypatch.setattr(remote_workers, "MOVE_ON_S", 600.0)
    api, second = await engine(), await engine()
    servers = [await open_server(api, settings=RETRY_ON_OUTAGE), await open_server(second, settings=RETRY_ON_OUTAGE)]
    async with worker_of(*servers) as worker:
        handle = await api.client.start_workflow("at_work", "task")
        await until(lambda: RUNS)
        before = worker.session
        (gone,) = [server for server in servers if server._workers.sessions]

        await asyncio.wait_for(gone.stop(), 20)

        await until(lambda: worker.connected and worker.session != before)
        GATES["task"].set()
        assert 1 == await handle.result(timeout=20)
        assert ["task"] == RUNS
    for server in servers:
        await server.stop()
    assert [] == [str(violation) for violation in check(await read(api.storage))]


async def test_step_is_finished_before_the_worker_moves(engine: OpenEngine):
    """A turn can't be handed over, so the server is left when it has its report: the step runs once."""
    api, second = await engine(), await engine()
    servers = [await open_server(api, settings=RETRY_ON_OUTAGE), await open_server(second, settings=RETRY_ON_OUTAGE)]
    async with worker_of(*servers) as worker:
        step = await api.client.start_workflow("in_a_step", "step")
        chore = await api.client.start_workflow("at_work", "task")
        await until(lambda: len(RUNS) == 2)
        before = worker.session
        (gone,) = [server for server in servers if server._workers.sessions]

        stopping = asyncio.ensure_future(gone.stop())
        await until(lambda: worker._workers._left_to is not None)
        GATES["step"].set()
        await asyncio.wait_for(stopping, 20)

        assert "step" == await step.result(timeout=20)
        await until(lambda: worker.connected and worker.session != before)
        GATES["task"].set()
        assert 1 == await chore.result(timeout=20)
        assert ["step", "task"] == sorted(RUNS)
    for server in servers:
        await server.stop()


async def test_stream_that_is_cancelled_while_it_ends_is_noticed(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch):
    """A call may be cancelled more than once: its worker has gone all the same."""
    write, serve = WorkerService._write, WorkerService._serve
    ending = asyncio.Event()

    async def slow_to_end(self: WorkerService, *args: Any, **settings: Any) -> None:
        try:
            await write(self, *args, **settings)
        finally:
            ending.set()
            await asyncio.sleep(0.3)

    async def cancelled_twice(self: WorkerService, *args: Any) -> None:
        serving = asyncio.ensure_future(serve(self, *args))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            serving.cancel()
            await ending.wait()
            serving.cancel()
            await serving

    monkeypatch.setattr(WorkerService, "_write", slow_to_end)
    monkeypatch.setattr(WorkerService, "_serve", cancelled_twice)
    api, second = await engine(), await engine()
    servers = [await open_server(api, settings=RETRY_ON_OUTAGE), await open_server(second, settings=RETRY_ON_OUTAGE)]
    async with worker_of(*servers) as worker:
        handle = await api.client.start_workflow("at_work", "task")
        await until(lambda: RUNS)
        before = worker.session
        (gone,) = [server for server in servers if server._workers.sessions]
        await asyncio.wait_for(gone.stop(), 20)
        assert 0 == gone._workers.sessions

        await until(lambda: worker.connected and worker.session != before)
        GATES["task"].set()
        assert 1 == await handle.result(timeout=20)
    for server in servers:
        await server.stop()


async def test_worker_with_one_server_reports_to_it_while_it_waits(engine: OpenEngine):
    """There is nowhere to go: the task is finished and recorded, and then the server ends."""
    api = await engine()
    server = await open_server(api, settings=RETRY_ON_OUTAGE)
    async with worker_of(server) as worker:
        handle = await api.client.start_workflow("at_work", "task")
        await until(lambda: RUNS)
        before = worker.session
        stopping = asyncio.ensure_future(server.stop())
        await until(lambda: server._workers._stopping)
        GATES["task"].set()
        await asyncio.wait_for(stopping, 20)

        events = [event.body.__class__.__name__ for event in await handle.history()]
        assert 1 == events.count("TaskCompleted")
        again = await open_server(api, settings=GrpcSettings(port=server.port, common=BRIEF))
        assert 1 == await handle.result(timeout=20)
        assert (["task"], True) == (RUNS, worker.session != before)
    await again.stop()
