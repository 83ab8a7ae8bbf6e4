"""What an engine does when there is nothing to do: its processor time with very many waiting executions.

Half of them wait for a signal, half for a timer in the far future. They are made with a small cache, then the engine is
opened afresh.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.listening import listener
from bench.load import by_callers, until_waiting
from bench.meters import Stopwatch
from bench.setting import Setting, config
from holdfast import Engine, EngineConfig, WorkflowContext, workflow

FULL = {"executions": 100_000, "seconds": 10.0, "settle_s": 3.0}
QUICK = {"executions": 5_000, "seconds": 3.0, "settle_s": 3.0}

_WEEK_S = 7 * 24 * 3600


@workflow
async def long_sleeper(ctx: WorkflowContext) -> None:
    await ctx.sleep(_WEEK_S)


def run(setting: Setting) -> list[Figure]:
    asyncio.run(_fill(setting))
    watch = asyncio.run(_rest(setting))
    percent = watch.cpu_s / watch.seconds * 100
    setting.tell(f"{percent:.2f} % of a processor with {setting['executions']} waiting")
    return [Figure(name="processor use at rest", figure=percent, unit="% of one", at_most=1.0)]


def _engine(setting: Setting, configuration: EngineConfig) -> Engine:
    return Engine(setting.url(), workflows=[listener, long_sleeper], config=configuration)


async def _fill(setting: Setting) -> None:
    total = setting["executions"]
    async with _engine(setting, config(cached_executions=1_000)) as engine:
        client = engine.client
        made = 0

        async def make(number: int) -> None:
            nonlocal made
            await client.start_workflow(listener if number % 2 else long_sleeper)
            made += 1
            if made % 20_000 == 0:
                setting.tell(f"{made:,} of {total:,} made")

        await by_callers(1_000, total, make)
        await until_waiting(client, total)


async def _rest(setting: Setting) -> Stopwatch:
    async with _engine(setting, config()):
        await asyncio.sleep(setting["settle_s"])
        with Stopwatch() as watch:
            await asyncio.sleep(setting["seconds"])
    return watch
