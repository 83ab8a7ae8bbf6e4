"""A task that ends after its engine: nobody takes its report, and nothing breaks.

Its key was given to this worker once more after a session was lost, so nobody waits for the older attempt.
"""

import asyncio

from holdfast import WorkflowContext, task, workflow
from holdfast.model.values import Failure


async def test_a_report_that_comes_after_the_end_is_dropped(engine):
    begun = asyncio.Event()

    @task
    async def waits() -> None:
        begun.set()
        await asyncio.Event().wait()

    @workflow
    async def flow(ctx: WorkflowContext) -> None:
        await ctx.task(waits)

    running = await engine(workflows=[flow], tasks=[waits])
    handle = await running.client.start_workflow(flow)
    await begun.wait()
    tasks = running._worker._tasks
    (attempt,) = tasks._running.values()
    await running.shutdown()

    await tasks._report(tasks._failure(attempt.work, Failure(type="ValueError", message="too late")))
    again = await engine()
    assert "TASK_FAILED" not in [event.type for event in await again.client.history(handle.id)]
