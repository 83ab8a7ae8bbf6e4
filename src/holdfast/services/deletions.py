"""Removes what deleted orgs have left, page by page."""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.errors import EngineStopped, HoldfastError
from holdfast.services.loops import Service, log


class Deletions(Service):
    """An org is gone within a minute of its deletion, and as long as its rows take."""

    TIMELY = False

    def __init__(self, upkeep: Upkeep, every_s: float = 30.0) -> None:
        super().__init__("holdfast-deletions")
        self._upkeep = upkeep
        self._every_s = every_s

    async def once(self) -> None:
        while await self._upkeep.delete_orgs():
            pass

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self.once()
            except EngineStopped:
                return
            except HoldfastError as error:
                # Whether any org was deleted may be just what could not be asked.
                log.warning("orgs that were deleted are looked for again in %g s: %s", self._every_s, error)
