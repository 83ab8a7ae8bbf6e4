"""Says how well the machine itself keeps time: a commit every tenth of a second, as one who fires timers makes them.

What it waits for longer than that is the machine's doing (its disk, or whatever else runs on it) and no fault of the
engine's: nobody else could have fired a timer then.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

import asyncpg

BEAT_S = 0.1
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

Stall = tuple[int, int]


class Metronome:
    """`stalls`: from when to when it waited in vain, by the database's clock, in microseconds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.stalls: list[Stall] = []

    async def __aenter__(self) -> Self:
        self._connection = await asyncpg.connect(self._url)
        await self._connection.execute("CREATE TABLE metronome (beats bigint); INSERT INTO metronome VALUES (0)")
        self._ahead_us = int(await self._connection.fetchval(_NOW)) - _monotonic_us()
        self._job = asyncio.ensure_future(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._job.cancel()
        await asyncio.wait([self._job])
        await self._connection.close()

    async def _beat(self) -> None:
        last = self._now()
        while True:
            await asyncio.sleep(BEAT_S)
            await self._connection.execute("UPDATE metronome SET beats = beats + 1")
            now = self._now()
            expected = last + int(2 * BEAT_S * 1e6)
            if now > expected:
                self.stalls.append((expected, now))
            last = now

    def _now(self) -> int:
        return _monotonic_us() + self._ahead_us


def stalled_us(stalls: list[Stall], since: int, until: int) -> int:
    """How much of a span the machine has taken for itself."""
    return sum(max(0, min(end, until) - max(begin, since)) for begin, end in stalls)


def stalled_s(stalls: list[Stall]) -> float:
    return sum(end - begin for begin, end in stalls) / 1e6


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000
