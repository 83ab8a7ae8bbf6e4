"""What a page of standalone tasks costs: so many statements, however many tasks are on it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from holdfast import Client, Engine, TaskContext, WorkflowStatus, task
from tests.conftest import OpenEngine, until

ASKING: ContextVar[bool] = ContextVar("asking", default=False)
"""Set in the test's own calls: whatever else the engine reads meanwhile is not counted."""


@task
async def echo(value: int) -> int:
    return value


@task
async def left(ctx: TaskContext) -> None:
    ctx.complete_later()


class Counted:
    """A connection that notes what is asked of it."""

    def __init__(self, connection: Any, statements: list[str]) -> None:
        self._connection = connection
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._connection, name)
        if name not in {"execute", "fetch", "fetchrow", "fetchval"}:
            return found

        def asked(statement: str, *values: Any) -> Any:
            self._statements.append(statement)
            return found(statement, *values)

        return asked


def count_reads(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are read with from now on."""
    statements: list[str] = []
    store: Any = engine._local.store
    read = store._read

    async def counted(work: Any, *more: Any) -> Any:
        if not ASKING.get():
            return await read(work, *more)
        return await read(lambda connection: work(Counted(connection, statements)), *more)

    monkeypatch.setattr(store, "_read", counted)
    return statements


async def asked(client: Client, statements: list[str], **options: Any) -> tuple[list[Any], int]:
    """A page, and how many statements it took."""
    before = len(statements)
    token = ASKING.set(True)
    page = await client.list_tasks(**options)
    ASKING.reset(token)
    return list(page.items), len(statements) - before


async def test_page_takes_as_many_statements_as_a_single_task(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch):
    """Finished ones, ones that wait for a worker, ones that were left to somebody: executions, rows, events."""
    running = await engine(tasks=[echo, left])
    client = running.client
    done = [await client.start_task(echo, number) for number in range(20)]
    assert list(range(20)) == [await handle.result() for handle in done]
    pending = [await client.start_task(echo, number, queue="nobody") for number in range(20)]
    waiting = [await client.start_task(left) for _ in range(20)]

    async def left_to_others() -> bool:
        return 20 == len((await client.list_tasks(status="WAITING")).items)

    await until(left_to_others)
    statements = count_reads(running, monkeypatch)

    one, for_one = await asked(client, statements, limit=1)
    page, for_all = await asked(client, statements, limit=60)

    assert [handle.task_id for handle in reversed([*done, *pending, *waiting])] == [item.task_id for item in page]
    assert [WorkflowStatus.WAITING] * 20 + [WorkflowStatus.PENDING] * 20 + [WorkflowStatus.COMPLETED] * 20 == [
        item.status for item in page
    ]
    assert list(range(19, -1, -1)) == [item.args[0] for item in page[20:40]]
    assert (page[:1], for_one) == (one, for_all)
    assert for_all <= 3


async def test_status_that_few_have_is_looked_for_in_a_few_reads(engine: OpenEngine, monkeypatch: pytest.MonkeyPatch):
    """The one that waits is the oldest of many that wait for a worker; every page on the way is there."""
    running = await engine(tasks=[echo, left])
    client = running.client
    oldest = await client.start_task(left)

    async def is_left() -> bool:
        return await oldest.status() is WorkflowStatus.WAITING

    await until(is_left)
    await asyncio.gather(*(client.start_task(echo, number, queue="nobody") for number in range(150)))
    statements = count_reads(running, monkeypatch)

    found, count = await asked(client, statements, status="WAITING", limit=1)

    assert [oldest.task_id] == [item.task_id for item in found]
    assert count <= 15
    assert 151 == len([item async for item in client.iter_tasks(status=["WAITING", "PENDING"], limit=7)])
