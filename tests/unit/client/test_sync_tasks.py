"""Standalone tasks for threads that have no event loop, and as part of the caller's own transaction."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import SyncEngine, SyncTaskHandle, TaskContext, WorkflowStatus, errors, task
from tests.conftest import QUICK
from tests.database_access import application


@task
def double(number: int) -> int:
    return 2 * number


@task
def by_others(ctx: TaskContext) -> str:
    ctx.complete_later()
    return ""


async def test_the_blocking_client_runs_tasks(engine):
    """Start, look, list, complete, wait: the same methods."""
    client = (await engine(tasks=[double, by_others])).client

    def script() -> None:
        handle = client.sync.start_task(double, 21, task_id="d")
        assert isinstance(handle, SyncTaskHandle)
        assert 42 == handle.result(timeout=10)
        assert ("d", WorkflowStatus.COMPLETED) == (handle.task_id, client.sync.task("d").status())
        deferred = client.sync.start_task(by_others)
        while deferred.status() is not WorkflowStatus.WAITING:
            pass
        deferred.complete("theirs")
        assert "theirs" == deferred.result(timeout=10)
        assert ["by_others", "double"] == [view.kind for view in client.sync.iter_tasks()]

    await asyncio.to_thread(script)


@pytest.mark.parametrize("commits", [True, False])
def test_a_task_is_started_in_the_callers_transaction(database_url: str, commits: bool):
    """Or never was, if that is rolled back."""
    with SyncEngine(database_url, tasks=[double], config=QUICK) as engine:
        connection = application(database_url)
        connection.execute("CREATE TABLE orders (name TEXT)")
        connection.commit()
        connection.execute("INSERT INTO orders VALUES ('tea')")
        handle = engine.client.start_task(double, 4, using=connection)
        if commits:
            connection.commit()
            assert 8 == handle.result(timeout=10)
        else:
            connection.rollback()
            with pytest.raises(errors.TaskNotFound):
                handle.status()
        connection.close()
