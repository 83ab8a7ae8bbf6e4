"""Making load: many callers at once, and waiting until a database has come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bench.meters import Stopwatch
from holdfast import Client, Status

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


async def until_waiting(client: Client, count: int) -> None:
    """Until so many executions are suspended and nothing else is open."""
    while True:
        found = await client.count_workflows()
        if found.get(Status.WAITING, 0) == count and not found.get(Status.RUNNING) and not found.get(Status.PENDING):
            return
        await asyncio.sleep(PAUSE_S)
