"""How long a month takes in a test: a workflow that sleeps thirty times for a day, with two signals, on virtual time.

Opening and closing the environment is measured apart: a test pays for it once.
"""

from __future__ import annotations

import asyncio
import time

from bench.figures import Figure
from bench.setting import Setting
from holdfast import WorkflowContext, workflow
from holdfast.testing import WorkflowEnvironment

FULL = {"days": 30, "rounds": 15}
QUICK = {"days": 30, "rounds": 3}


@workflow
async def month(ctx: WorkflowContext, days: int) -> list[str]:
    letters = []
    for _ in range(days):
        await ctx.sleep(86_400)
        letters += await ctx.drain_signals("letter", str)
    return letters


def run(setting: Setting) -> list[Figure]:
    scenario_ms, around_ms = asyncio.run(_measure(setting["days"], setting["rounds"]))
    setting.tell(f"{scenario_ms:.0f} ms, and {around_ms:.0f} ms around it")
    return [
        Figure(name="30 days with two signals", figure=scenario_ms, unit="ms", at_most=50.0),
        Figure(name="opening and closing the environment", figure=around_ms, unit="ms"),
    ]


async def _measure(days: int, rounds: int) -> tuple[float, float]:
    """The middle of several rounds: the first one loads code."""
    found = sorted([await _scenario(days) for _ in range(rounds)])
    scenario_s, whole_s = found[len(found) // 2]
    return scenario_s * 1e3, (whole_s - scenario_s) * 1e3


async def _scenario(days: int) -> tuple[float, float]:
    opened = time.perf_counter()
    async with WorkflowEnvironment(workflows=[month]) as env:
        began = time.perf_counter()
        handle = await env.client.start_workflow(month, days)
        for letter in ("first", "second"):
            await env.advance(days=days / 3)
            await handle.signal("letter", letter)
        if await env.result(handle) != ["first", "second"]:
            raise AssertionError("a letter was lost")
        took = time.perf_counter() - began
    return took, time.perf_counter() - opened
