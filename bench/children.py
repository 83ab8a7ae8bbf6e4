"""One workflow that starts many children at once and awaits them all.

The aim is 2 s for 1,000 children; each child is an execution of its own with two events, and has two rows in its
parent's history, for its start and its end.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.meters import Stopwatch
from bench.setting import Setting, config
from bench.throughput import processor_time
from holdfast import Engine, WorkflowContext, workflow

FULL = {"children": 1_000}
QUICK = {"children": 200}


@workflow
async def child(_: WorkflowContext, number: int) -> int:
    return 2 * number


@workflow
async def parent(ctx: WorkflowContext, children: int) -> int:
    return sum(await ctx.all([ctx.child(child, number) for number in range(children)]))


def run(setting: Setting) -> list[Figure]:
    watch = asyncio.run(_measure(setting))
    setting.tell(f"{setting['children']} children in {watch.seconds:.2f} s")
    return [
        Figure(name="start to result", figure=watch.seconds, unit="s", at_most=setting.aim(2.0)),
        *processor_time(watch, setting["children"], "child"),
    ]


async def _measure(setting: Setting) -> Stopwatch:
    async with Engine(setting.url(), workflows=[parent, child], config=config()) as engine:
        await (await engine.client.start_workflow(parent, 10)).result()
        children = setting["children"]
        with Stopwatch() as watch:
            handle = await engine.client.start_workflow(parent, children)
            assert await handle.result() == children * (children - 1)
        return watch
