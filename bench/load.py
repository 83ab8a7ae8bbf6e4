"""Making load: many callers at once, and waiting until a database has come to rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench.meters import Stopwatch
from holdfast import Client, WorkflowStatus

PAUSE_S = 0.02


async def by_callers(callers: int, total: int, call: Callable[[int], Awaitable[object]]) -> Stopwatch:
    """Make `total` numbered calls from so many concurrent callers, each making its next when it has its answer."""
    numbers = iter(range(total))

    async def caller() -> None:
        for number in numbers:
            await call(number)

    with Stopwatch() as watch:
        await asyncio.gather(*(caller() for _ in range(callers)))
    return watch


async def at_pace(per_s: float, total: int, call: Callable[[int], Awaitable[object]]) -> list[float]:
    """Make numbered calls at this rate, whatever the answers do: how long each took from when it was due, in
    seconds."""
    began = time.perf_counter() + 0.1

    async def one(number: int) -> float:
        due = began + number / per_s
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        await call(number)
        return time.perf_counter() - due

    return list(await asyncio.gather(*(one(number) for number in range(total))))


async def until_waiting(client: Client, count: int) -> None:
    """Until so many executions are suspended and nothing else is open."""
    while True:
        found = await client.count_workflows()
        if (
            found.get(WorkflowStatus.WAITING, 0) == count
            and not found.get(WorkflowStatus.RUNNING)
            and not found.get(WorkflowStatus.PENDING)
        ):
            return
        await asyncio.sleep(PAUSE_S)
