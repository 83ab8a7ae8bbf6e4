"""Workflows per second, started and completed through the client.

Each caller starts a workflow of one step (or one task) and waits for its result before it starts the next. The
yardstick is the bare database with one commit per row: group commit has to beat it by far.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.load import by_callers
from bench.meters import Stopwatch
from bench.setting import Setting, config
from holdfast import Engine, WorkflowContext, task, workflow

FULL = {"callers": 256, "workflows": 20_000, "task_workflows": 10_000, "warm_up": 1_000, "commits": 500}
QUICK = {"callers": 256, "workflows": 3_000, "task_workflows": 1_500, "warm_up": 500, "commits": 100}


async def increment(number: int) -> int:
    return number + 1


@task
async def increment_task(number: int) -> int:
    return number + 1


@workflow
async def one_step(ctx: WorkflowContext, number: int) -> int:
    return await ctx.run(increment, number)


@workflow
async def one_task(ctx: WorkflowContext, number: int) -> int:
    return await ctx.task(increment_task, number)


def run(setting: Setting) -> list[Figure]:
    commits = setting["commits"]
    bare = commits / setting.commit_seconds(commits)
    steps, tasks, served_s = asyncio.run(_measure(setting))
    server = [] if setting.postgres is None else [_of_server(served_s, setting["workflows"])]
    return [
        Figure(
            name="one-step workflows",
            figure=setting["workflows"] / steps.seconds,
            unit="workflows/s",
            yardstick=bare,
            yardstick_name="bare commits/s",
            at_least=setting.aim(5_000, postgres=3_500),
        ),
        Figure(name="one-task workflows", figure=setting["task_workflows"] / tasks.seconds, unit="workflows/s"),
        *processor_time(steps, setting["workflows"], "one-step workflow"),
        *processor_time(tasks, setting["task_workflows"], "one-task workflow"),
        *server,
    ]


def _of_server(cpu_s: float, count: int) -> Figure:
    return Figure(name="processor time of the server per one-step workflow", figure=cpu_s / count * 1e6, unit="µs")


def processor_time(watch: Stopwatch, count: int, what: str) -> list[Figure]:
    """What one of `count` things cost: steadier than their rate on a machine that others use, too."""
    return [
        Figure(name=f"processor time per {what}", figure=watch.cpu_s / count * 1e6, unit="µs"),
        Figure(name=f"of it on the event loop, per {what}", figure=watch.loop_cpu_s / count * 1e6, unit="µs"),
    ]


async def _measure(setting: Setting) -> tuple[Stopwatch, Stopwatch, float]:
    callers = setting["callers"]
    async with Engine(setting.url(), workflows=[one_step, one_task], tasks=[increment_task], config=config()) as engine:
        client = engine.client

        async def step(number: int) -> None:
            handle = await client.start_workflow(one_step, number)
            assert await handle.result() == number + 1

        async def queued(number: int) -> None:
            handle = await client.start_workflow(one_task, number)
            assert await handle.result() == number + 1

        await by_callers(callers, setting["warm_up"], step)
        before_s = _server_cpu_s(setting)
        steps = await by_callers(callers, setting["workflows"], step)
        served_s = _server_cpu_s(setting) - before_s
        setting.tell(f"{setting['workflows'] / steps.seconds:,.0f} one-step workflows/s")
        await by_callers(callers, setting["warm_up"], queued)
        tasks = await by_callers(callers, setting["task_workflows"], queued)
        setting.tell(f"{setting['task_workflows'] / tasks.seconds:,.0f} one-task workflows/s")
        return steps, tasks, served_s


def _server_cpu_s(setting: Setting) -> float:
    return 0.0 if setting.postgres is None else setting.postgres.cpu_s()
