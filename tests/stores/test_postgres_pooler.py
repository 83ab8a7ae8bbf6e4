"""Behind a pooler that gives every transaction another connection, with hints off: nothing is left in a session."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from holdfast import TaskContext, WorkflowContext, task, workflow
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
