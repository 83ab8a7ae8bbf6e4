"""Memory of suspended workflows: with their programs cached, and evicted.

Both above the memory of the same engine after a warm-up. Evicted ones are measured by the growth from one large number
of them to a larger one, when every bounded cache is full (SQLite's 64 MB of pages hold some 80,000 of them): it should
be nothing. Small numbers of them (`--quick`) fill those caches and miss the target.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from bench.figures import Figure
from bench.listening import listener
from bench.load import by_callers, until_waiting
from bench.meters import resident_bytes
from bench.setting import Setting, config
from holdfast import Engine, EngineConfig

FULL = {"suspended": 10_000, "evicted_from": 105_000, "evicted_to": 125_000, "cached_executions": 500}
QUICK = {"suspended": 1_000, "evicted_from": 2_000, "evicted_to": 4_000, "cached_executions": 100}

MB = 1_000_000
_WARM_UP = 300


def run(setting: Setting) -> list[Figure]:
    empty, cached = asyncio.run(_grow(setting.url("cached"), config(), [setting["suspended"]]))
    per_cached = (cached - empty) / setting["suspended"]
    setting.tell(f"{setting['suspended']} suspended: {(cached - empty) / MB:.0f} MB above {empty / MB:.0f} MB")
    begun, fewer, more = _in_fresh_process(setting)
    per_evicted = (more - fewer) / (setting["evicted_to"] - setting["evicted_from"])
    setting.tell(f"{per_evicted:.0f} bytes for each evicted one; {(more - begun) / MB:.0f} MB with all caches full")
    return [
        Figure(name="suspended and cached, in all", figure=(cached - empty) / MB, unit="MB", at_most=120.0),
        Figure(name="each of them", figure=per_cached, unit="bytes"),
        Figure(name="each evicted one", figure=max(per_evicted, 0.0), unit="bytes", at_most=200.0),
        Figure(name="all caches of the engine full", figure=(more - begun) / MB, unit="MB"),
        Figure(name="empty engine", figure=empty / MB, unit="MB"),
    ]


def _in_fresh_process(setting: Setting) -> list[int]:
    """Memory that was used once is seldom given back, so the second measurement needs its own process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        sizes = [setting["evicted_from"], setting["evicted_to"]]
        return pool.submit(_grow_evicted, setting.url("evicted"), setting["cached_executions"], sizes).result()


def _grow_evicted(url: str, cached_executions: int, sizes: list[int]) -> list[int]:
    return asyncio.run(_grow(url, config(cached_executions=cached_executions), sizes))


async def _grow(url: str, configuration: EngineConfig, sizes: list[int]) -> list[int]:
    """The process's memory with a warm engine, then with each number of suspended workflows."""
    async with Engine(url, workflows=[listener], config=configuration) as engine:
        client = engine.client
        count = _WARM_UP
        await by_callers(100, count, lambda _: client.start_workflow(listener))
        await until_waiting(client, count)
        found = [_memory()]
        for size in sizes:
            await by_callers(500, size + _WARM_UP - count, lambda _: client.start_workflow(listener))
            count = size + _WARM_UP
            await until_waiting(client, count)
            found.append(_memory())
        return found


def _memory() -> int:
    gc.collect()
    return resident_bytes()
