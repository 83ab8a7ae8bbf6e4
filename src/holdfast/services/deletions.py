"""Removes what deleted orgs have left, page by page."""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.services.service import Service


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
            await self.once()
