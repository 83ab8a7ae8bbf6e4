"""Looks out for what other processes have committed to the same database: new work, news, ends.

A database that tells of changes is listened to; else a look is cheap, and where nothing ever comes from elsewhere the
looks become rarer, down to one in `max_s`. However much is told, no more than half of the time is spent looking; and
much less by a process that is busy, since it takes on new work with whatever it commits.
"""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.services.service import Service

BACKOFF = 1.2
MIN_GAP_S = 0.002
BUSY = 32
BUSY_GAP_S = 0.05


class PeerWatcher(Service):
    TIMELY = False

    def __init__(self, upkeep: Upkeep, every_s: float, max_s: float) -> None:
        super().__init__("holdfast-peer-watcher")
        self._upkeep = upkeep
        self._every_s = every_s
        self._max_s = max_s

    async def once(self) -> None:
        await self._upkeep.poll_changes()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self._every_s
        done = 0
        while True:
            await self._upkeep.until_changed(pause_s)
            began_at = loop.time()
            found = await self._upkeep.poll_changes()
            pause_s = self._every_s if found else min(pause_s * BACKOFF, self._max_s)
            if found:
                before, done = done, self._upkeep.work_done()
                gap_s = BUSY_GAP_S if done - before > BUSY else MIN_GAP_S
                await asyncio.sleep(max(gap_s, loop.time() - began_at))
