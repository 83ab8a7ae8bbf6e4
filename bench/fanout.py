"""One workflow that puts many tasks on the queue and awaits them all.

The number of turns shows whether completions that arrive together become one turn. The aim is 1.5 s for 1,000 tasks;
that is the target.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.meters import Stopwatch
from bench.setting import Setting, config
from bench.throughput import processor_time
from holdfast import Engine, WorkflowContext, WorkflowHandle, task, workflow

FULL = {"tasks": 1_000}
QUICK = {"tasks": 200}


@task
async def double(number: int) -> int:
    return 2 * number


@workflow
async def fan_out(ctx: WorkflowContext, tasks: int) -> int:
    return sum(await asyncio.gather(*(ctx.task(double, number) for number in range(tasks))))


def run(setting: Setting) -> list[Figure]:
    watch, turns, events = asyncio.run(_measure(setting))
    setting.tell(f"{setting['tasks']} tasks in {watch.seconds:.2f} s and {turns} turns")
    return [
        Figure(name="start to result", figure=watch.seconds, unit="s", at_most=setting.aim(1.5)),
        Figure(name="turns", figure=turns, unit="turns"),
        Figure(name="history", figure=events, unit="events"),
        *processor_time(watch, setting["tasks"], "task"),
    ]


async def _measure(setting: Setting) -> tuple[Stopwatch, int, int]:
    async with Engine(setting.url(), workflows=[fan_out], tasks=[double], config=config()) as engine:
        await (await engine.client.start_workflow(fan_out, 10)).result()
        tasks = setting["tasks"]
        with Stopwatch() as watch:
            handle = await engine.client.start_workflow(fan_out, tasks)
            assert await handle.result() == tasks * (tasks - 1)
        return watch, *(await _turns(handle))


async def _turns(handle: WorkflowHandle) -> tuple[int, int]:
    """How many turns a history records, and its length: all rows of one turn name the same last event it had seen."""
    history = await handle.history()
    seen = {getattr(event.body, "up_to", None) for event in history}
    return len(seen - {None}), len(history)
