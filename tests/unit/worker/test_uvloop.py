"""An engine with its worker on uvloop, which uvicorn brings along: what leans on the loop works there, too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Engine, WorkflowContext, task, workflow
from holdfast.errors import WorkflowFailed
from tests.conftest import until

uvloop = pytest.importorskip("uvloop")


async def slow_step(number: int) -> int:
    await asyncio.sleep(0.01)
    return number + 1


def plain_step(number: int) -> int:
    return number * 2


@task
async def charge(number: int) -> int:
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
    return number + 10


@task
def charge_in_a_thread(number: int) -> int:
    return number + 100


@workflow
async def child(ctx: WorkflowContext, number: int) -> int:
    await ctx.sleep(timedelta(milliseconds=5))
    return number


async def one_more(ctx: WorkflowContext) -> int:
    return await ctx.run(slow_step, 0)


@workflow
async def everything(ctx: WorkflowContext, number: int) -> list[Any]:
    """Steps and tasks of both kinds, asyncio's own means in a workflow, a timer, a child, a signal."""
    first = await ctx.run(slow_step, number)
    second = await ctx.run(plain_step, first)
    both = await asyncio.gather(ctx.task(charge, second), ctx.task(charge_in_a_thread, second))
    grown = await ctx.child(child, 7)
    async with asyncio.TaskGroup() as group:
        named = group.create_task(one_more(ctx))
    return [second, *both, grown, named.result(), await ctx.wait_for_signal("go")]


@workflow
async def fails(ctx: WorkflowContext) -> None:
    raise ValueError("as it should")


def run(main: Coroutine[Any, Any, Any]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def test_workflows_run_on_uvloop(database_url):
    async def main() -> None:
        async with Engine(
            database_url, workflows=[everything, child, fails], tasks=[charge, charge_in_a_thread]
        ) as engine:
            assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
            handles = [await engine.client.start_workflow(everything, number) for number in range(20)]
            for handle in handles:
                await handle.signal("go", "on")
            for number, handle in enumerate(handles):
                doubled = (number + 1) * 2
                assert await handle.result() == [doubled, doubled + 10, doubled + 100, 7, 1, "on"]
            with pytest.raises(WorkflowFailed):
                await (await engine.client.start_workflow(fails)).result()

    run(main())


def test_an_execution_continues_on_another_loop(database_url):
    """Begun on uvloop, rebuilt from its history on asyncio's own."""
    options: dict[str, Any] = {"workflows": [everything, child], "tasks": [charge, charge_in_a_thread]}

    async def begin() -> None:
        async with Engine(database_url, **options) as engine:
            handle = await engine.client.start_workflow(everything, 1, workflow_id="w")

            async def waits_for_its_signal() -> bool:
                history = await engine.client.history(handle.id)
                return await handle.status() == "WAITING" and history[-1].seq > 10

            await until(waits_for_its_signal)

    async def finish() -> None:
        async with Engine(database_url, **options) as engine:
            handle = await engine.client.find_workflow("w", everything)
            await handle.signal("go", "on")
            assert await handle.result() == [4, 14, 104, 7, 1, "on"]

    run(begin())
    asyncio.run(finish())
