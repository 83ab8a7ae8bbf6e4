"""Recorded steps per second: many workflows at once, and one alone against bare commits.

A workflow alone has to commit each step before the next one starts, so its yardstick is the same number of bare
commits.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.meters import Stopwatch
from bench.setting import Setting, config
from bench.throughput import processor_time
from holdfast import Engine, WorkflowContext, workflow

FULL = {"workflows": 100, "steps": 100, "sequential_steps": 1_000}
QUICK = {"workflows": 100, "steps": 20, "sequential_steps": 100}


async def increment(number: int) -> int:
    return number + 1


@workflow
async def many_steps(ctx: WorkflowContext, steps: int) -> int:
    number = 0
    for _ in range(steps):
        number = await ctx.run(increment, number)
    return number


def run(setting: Setting) -> list[Figure]:
    count = setting["sequential_steps"]
    before = setting.commit_seconds(count)
    together, alone = asyncio.run(_measure(setting))
    after = setting.commit_seconds(count)
    steps = setting["workflows"] * setting["steps"]
    return [
        Figure(
            name="steps of many workflows",
            figure=steps / together.seconds,
            unit="steps/s",
            at_least=setting.aim(12_000, postgres=5_000),
        ),
        Figure(
            name=f"{count} steps of one workflow",
            figure=alone.seconds,
            unit="s",
            yardstick=(before + after) / 2,
            yardstick_name=f"{count} bare commits, s",
            at_most=setting.aim(2.0),
            of_ratio=True,
        ),
        *processor_time(together, steps, "step"),
        *processor_time(alone, count, "step of one workflow alone"),
    ]


async def _measure(setting: Setting) -> tuple[Stopwatch, Stopwatch]:
    async with Engine(setting.url(), workflows=[many_steps], config=config()) as engine:
        client = engine.client

        async def work(steps: int) -> None:
            handle = await client.start_workflow(many_steps, steps)
            assert await handle.result() == steps

        await asyncio.gather(*(work(5) for _ in range(setting["workflows"])))
        with Stopwatch() as together:
            await asyncio.gather(*(work(setting["steps"]) for _ in range(setting["workflows"])))
        setting.tell(f"{setting['workflows'] * setting['steps'] / together.seconds:,.0f} steps/s")
        with Stopwatch() as alone:
            await work(setting["sequential_steps"])
        setting.tell(f"{setting['sequential_steps']} steps of one workflow in {alone.seconds:.2f} s")
        return together, alone
