"""A worker that is elsewhere runs standalone tasks: with nothing but tasks, it has all that is needed."""

from __future__ import annotations

from typing import Any

from holdfast import RemoteWorker, TaskContext, WorkerConfig, WorkflowStatus, task
from tests.conftest import OpenEngine, until
from tests.grpc_server import open_server
from tests.unit.engine.records import check_all


@task
async def double(number: int) -> int:
    return 2 * number


@task
def by_others(ctx: TaskContext) -> Any:
    ctx.complete_later()


async def test_a_remote_worker_runs_a_standalone_task(engine: OpenEngine) -> None:
    """The server has no code at all; what was deferred is completed by its id."""
    api = await engine()
    server = await open_server(api)
    config = WorkerConfig(lease_s=2.0, shutdown_grace_s=0.5)
    try:
        async with RemoteWorker(server.url, tasks=[double, by_others], config=config) as worker:
            handle = await api.client.start_task(double, 21)
            deferred = await api.client.start_task("by_others", task_id="o")

            async def waiting() -> bool:
                return await deferred.status() is WorkflowStatus.WAITING

            assert 42 == await handle.result(timeout=10)
            assert worker.session == (await handle.view()).worker
            await until(waiting)
            await deferred.complete("theirs")
            assert "theirs" == await deferred.result(timeout=10)
    finally:
        await server.stop()
    await check_all(api)
