"""Looks out for what other processes have committed to the same database: new work, news, ends.

A database that tells of changes is listened to; else a look is cheap, and where nothing ever comes from elsewhere the
looks become rarer, down to one in `rest_s`. However much is told, no more than half of the time is spent looking; and
much less by a process that is busy, since it takes on new work with whatever it commits.
"""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.errors import EngineStopped, OutcomeUnknown, Unavailable
from holdfast.services.loops import Service, log

SLOWER = 1.2
BREATH_S = 0.002
BUSY = 32
BUSY_BREATH_S = 0.05


class Lookout(Service):
    TIMELY = False

    def __init__(self, upkeep: Upkeep, every_s: float, rest_s: float) -> None:
        super().__init__("holdfast-lookout")
        self._upkeep = upkeep
        self._every_s = every_s
        self._rest_s = rest_s

    async def once(self) -> None:
        await self._upkeep.look_around()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self._every_s
        done = 0
        while True:
            await self._upkeep.until_changed(pause_s)
            began_at = loop.time()
            try:
                found = await self._upkeep.look_around()
            except EngineStopped:
                return
            except (Unavailable, OutcomeUnknown) as error:
                log.warning("could not look around: %s", error)
                found = False
            pause_s = self._every_s if found else min(pause_s * SLOWER, self._rest_s)
            if found:
                before, done = done, self._upkeep.work_done()
                breath_s = BUSY_BREATH_S if done - before > BUSY else BREATH_S
                await asyncio.sleep(max(breath_s, loop.time() - began_at))
