"""Time that stands still until somebody moves it: the clock of a test's engine, and those who sleep by it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from itertools import count
from typing import Any

from holdfast.model.values import MICRO

START = datetime(2030, 1, 1, tzinfo=UTC)
"""When nothing else is said, tests begin here: a test that passes today passes on every day."""


class VirtualTime:
    """Called, it is the engine's clock: microseconds since 1970. Moved by `move_to` alone, never back."""

    def __init__(self, start_at: int) -> None:
        self._now = start_at
        self._sleepers: list[tuple[int, int, asyncio.Future[None], asyncio.Task[Any] | None]] = []
        self._numbers = count()
        self.on_sleep: Callable[[], None] = lambda: None

    def __call__(self) -> int:
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Until the clock stands `seconds` further. Whoever sleeps here is not waited for: it can't go on by itself."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        wake_at = self._now + round(seconds * MICRO)
        heapq.heappush(self._sleepers, (wake_at, next(self._numbers), woken, asyncio.current_task()))
        self.on_sleep()
        await woken

    @property
    def next_at(self) -> int | None:
        """When the first sleeper is to wake."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    @property
    def asleep(self) -> Collection[asyncio.Task[Any] | None]:
        return {task for _, _, woken, task in self._sleepers if not woken.done()}

    def move_to(self, at: int) -> bool:
        """Set the clock and wake who was to sleep until then, in the order of their instants. Whether anybody was."""
        self._now = max(self._now, at)
        woken = False
        while (next_at := self.next_at) is not None and next_at <= self._now:
            heapq.heappop(self._sleepers)[2].set_result(None)
            woken = True
        return woken
