"""How late sleepers wake: many durable sleeps that end at about the same time.

Late is the time from the instant a sleep was to end to the moment the workflow's code goes on.
"""

from __future__ import annotations

import asyncio
import time

from bench.figures import Figure, percentile
from bench.setting import Setting, config
from holdfast import Engine, WorkflowContext, workflow

FULL = {"sleepers": 1_000, "sleep_s": 1.0}
QUICK = {"sleepers": 200, "sleep_s": 0.5}

_late_ms: list[float] = []


@workflow
async def sleeper(ctx: WorkflowContext, seconds: float) -> None:
    due_at = ctx.now().timestamp() + seconds
    await ctx.sleep(seconds)
    _late_ms.append((time.time() - due_at) * 1e3)


def run(setting: Setting) -> list[Figure]:
    _late_ms.clear()
    asyncio.run(_measure(setting))
    p50, p99 = percentile(_late_ms, 50), percentile(_late_ms, 99)
    setting.tell(f"late by {p50:.0f} ms (p50), {p99:.0f} ms (p99)")
    return [
        Figure(name="late, p50", figure=p50, unit="ms", at_most=setting.aim(60.0)),
        Figure(name="late, p99", figure=p99, unit="ms", at_most=setting.aim(60.0)),
        Figure(name="late, worst", figure=max(_late_ms), unit="ms"),
    ]


async def _measure(setting: Setting) -> None:
    async with Engine(setting.url(), workflows=[sleeper], config=config()) as engine:
        handles = await asyncio.gather(
            *(engine.client.start_workflow(sleeper, setting["sleep_s"]) for _ in range(setting["sleepers"]))
        )
        await asyncio.gather(*(handle.result() for handle in handles))
