"""Behind a pooler that gives every transaction another connection, with hints off: nothing is left in a session."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import asyncpg
import pytest

from holdfast import TaskContext, WorkflowContext, task, workflow
from holdfast.errors import ServerNotSupported
from tests.conftest import OpenEngine
from tests.stores.pooler import Pooler

ORDERS = 12


@task
async def double(ctx: TaskContext, number: int) -> int:
    return 2 * number


@workflow
async def order(ctx: WorkflowContext, number: int) -> int:
    paid = await ctx.wait_for_signal("paid", int)
    await ctx.sleep(timedelta(milliseconds=20))
    shipped = await ctx.wait_for_event("shipped", where=f"input.order == {number}")
    return int(await ctx.task(double, paid)) + int(shipped["order"])


async def test_everything_works_behind_a_transaction_pooler(
    postgres_url: str, engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    pooler = Pooler(postgres_url, size=3)
    async with pooler.running() as url:
        engines = [await engine(workflows=[order], tasks=[double], url=url) for _ in range(2)]
        one, two = (running.client for running in engines)
        handles = await asyncio.gather(
            *(one.start_workflow(order, number, workflow_id=f"o{number}") for number in range(ORDERS))
        )
        await asyncio.gather(
            *(
                two.signal_with_start_workflow(f"o{number}", order, number, signal_name="paid", signal_value=number)
                for number in range(ORDERS)
            )
        )
        await asyncio.gather(*(two.publish_event("shipped", {"order": number}) for number in range(ORDERS)))
        async with asyncio.timeout(60):
            results = await asyncio.gather(*(handle.result() for handle in handles))
        listed = [view async for view in two.iter_workflows()]
        for running in engines:
            await running.shutdown()

    assert results == [3 * number for number in range(ORDERS)]
    assert len(listed) == ORDERS
    busy = [given for given in pooler.transactions if len(given) > 5]
    assert any(len(set(given)) > 1 for given in busy), "somebody's transactions ran on several connections"
    complaints = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [text for text in complaints if "synchronous_commit" not in text] == []


async def test_without_notifications_off_it_is_refused_before_anything_is_set(
    postgres_url: str, engine: OpenEngine
) -> None:
    """A session is given to others with all that was set in it: that a commit need not be on disk, for one. A pooler
    with nothing else to do gives the same session twice, so that a hint to oneself would come back."""
    async with Pooler(postgres_url, size=1).running() as url:
        through = url.replace("notify=off", "")
        with pytest.raises(ServerNotSupported, match=r"transaction pooler.*notify=off"):
            await engine(workflows=[order], url=through)
        shared = await asyncpg.connect(url.partition("?")[0], statement_cache_size=0)
        changed = await shared.fetch("SELECT name FROM pg_settings WHERE source = 'session'")
        await shared.close()

    assert [] == changed
