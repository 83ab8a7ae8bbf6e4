"""How many live programs a worker keeps, and that those at work are never among the ones it throws away."""

from __future__ import annotations

import asyncio
import os

import pytest

from holdfast import EngineConfig, StoreConfig, WorkerConfig, WorkflowContext, workflow
from holdfast.worker.runtime import REPLAY_ALWAYS
from tests.conftest import OpenEngine, until


def keeping(programs: int) -> EngineConfig:
    return EngineConfig(
        store=StoreConfig(synchronous="normal"),
        worker=WorkerConfig(shutdown_grace_s=0.2, cached_executions=programs),
    )


@pytest.mark.skipif(REPLAY_ALWAYS in os.environ, reason="the switch keeps no program at all")
@pytest.mark.parametrize("programs", [0, 1, 3])
async def test_programs_at_rest_are_kept_up_to_the_limit(engine: OpenEngine, programs: int):
    """Those that go on by themselves, too, count once they rest; none is left unclosed."""
    ended = []

    @workflow
    async def waits(ctx: WorkflowContext) -> str:
        try:
            return await ctx.wait_for_signal("go", str)
        finally:
            ended.append(ctx.info.workflow_execution_id)

    opened = await engine(workflows=[waits], config=keeping(programs))
    handles = [await opened.client.start_workflow(waits) for _ in range(6)]
    worker = opened.worker
    assert worker is not None
    await until(lambda: worker.cached == programs and len(ended) == 6 - programs)
    for handle in handles:
        await handle.signal("go", "on")
    assert ["on"] * 6 == [await handle.result() for handle in handles]


async def test_what_is_at_work_hears_of_events_whatever_is_kept(engine: OpenEngine):
    """With no program kept at all, a cancel and a signal reach executions whose steps are running."""
    go_on = asyncio.Event()
    running = []

    async def step(name: str) -> str:
        running.append(name)
        await go_on.wait()
        return name

    @workflow
    async def works(ctx: WorkflowContext, name: str) -> str:
        first = await ctx.race(ctx.run(step, name), ctx.wait_for_signal("stop", str))
        return str(first.result)

    opened = await engine(workflows=[works], config=keeping(0))
    handles = [await opened.client.start_workflow(works, f"step {number}") for number in range(3)]
    await until(lambda: len(running) == 3)
    await handles[1].signal("stop", "stopped")
    assert "stopped" == await handles[1].result()
    go_on.set()
    assert ["step 0", "stopped", "step 2"] == [await handle.result() for handle in handles]
    assert 3 == len(running)
