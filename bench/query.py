"""Asking a workflow with a long history: the first time after a restart, and again; live, built for it, and as it was.

Cold contains reading and replaying the whole history. An update and a look at the state are measured beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from bench.figures import Figure
from bench.setting import Setting, config
from holdfast import Engine, WorkflowContext, WorkflowHandle, WorkflowStatus, query, update, workflow

FULL = {"history_events": 10_000, "warm_samples": 200}
QUICK = {"history_events": 1_000, "warm_samples": 50}

_TOGETHER = 50


async def nothing() -> None:
    """A step that leaves an event."""


@workflow
class Grown:
    """Makes itself a history of about so many events, then waits."""

    def __init__(self) -> None:
        self.done = 0

    async def run(self, ctx: WorkflowContext, events: int) -> None:
        for _ in range(events // _TOGETHER):
            await asyncio.gather(*(ctx.run(nothing) for _ in range(_TOGETHER)))
            self.done += _TOGETHER
        ctx.state["done"] = self.done
        await ctx.wait_for_signal("end")

    @query
    def so_far(self) -> int:
        return self.done

    @update
    def add(self, amount: int) -> int:
        self.done += amount
        return self.done


def run(setting: Setting) -> list[Figure]:
    found = asyncio.run(_measure(setting))
    setting.tell(", ".join(f"{name} {value * 1e3:.2f} ms" for name, value in found.items() if name != "events"))
    return [
        Figure(name="query, live program", figure=found["live"] * 1e3, unit="ms", at_most=5.0),
        Figure(name="query, cold", figure=found["cold"], unit="s", at_most=1.0),
        Figure(name="query, warm", figure=found["warm"] * 1e3, unit="ms", at_most=5.0),
        Figure(name="query as of the middle, cold", figure=found["past cold"], unit="s", at_most=1.0),
        Figure(name="query as of the middle, warm", figure=found["past warm"] * 1e3, unit="ms", at_most=5.0),
        Figure(name="state", figure=found["state"] * 1e3, unit="ms"),
        Figure(name="update, live program", figure=found["update"] * 1e3, unit="ms"),
        Figure(name="events in the history", figure=found["events"], unit="events"),
    ]


async def _measure(setting: Setting) -> dict[str, float]:
    samples = setting["warm_samples"]
    found: dict[str, float] = {}
    async with Engine(setting.url(), workflows=[Grown], config=config()) as engine:
        handle = await engine.client.start_workflow(Grown, setting["history_events"], workflow_id="grown")
        while await handle.status() is not WorkflowStatus.WAITING:
            await asyncio.sleep(0.02)
        found["live"] = await _median_s(samples, lambda: handle.query("so_far"))
    async with Engine(setting.url(), workflows=[Grown], config=config()) as engine:
        handle = await engine.client.find_workflow("grown")
        middle = (await handle.describe()).history_length // 2
        found["cold"] = await _median_s(1, lambda: handle.query("so_far"))
        found["warm"] = await _median_s(samples, lambda: handle.query("so_far"))
        found["past cold"] = await _median_s(1, lambda: handle.query("so_far", as_of=middle))
        found["past warm"] = await _median_s(samples, lambda: handle.query("so_far", as_of=middle))
        found["state"] = await _median_s(20, handle.state)
        found["update"] = await _updates_s(handle)
        found["events"] = (await handle.describe()).history_length
    return found


async def _updates_s(handle: WorkflowHandle) -> float:
    await handle.update("add", 0)  # the first one brings the program to life
    return await _median_s(50, lambda: handle.update("add", 1))


async def _median_s(samples: int, call: Callable[[], Awaitable[Any]]) -> float:
    taken = []
    for _ in range(samples):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    return median(taken)
