"""Looks out for what other processes have committed to the same database: new work, news, ends.

A look is cheap. Where nothing ever comes from elsewhere the looks become rarer, down to one in `rest_s`.
"""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.errors import EngineStopped, Unavailable
from holdfast.services.loops import Service, log

SLOWER = 1.2


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
        pause_s = self._every_s
        while True:
            await asyncio.sleep(pause_s)
            try:
                found = await self._upkeep.look_around()
            except EngineStopped:
                return
            except Unavailable as error:
                log.warning("could not look around: %s", error)
                found = False
            pause_s = self._every_s if found else min(pause_s * SLOWER, self._rest_s)
