"""Forgets request ids, published events and closed executions whose time is over."""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.model.values import MICRO
from holdfast.services.service import Service


class Housekeeping(Service):
    TIMELY = False

    def __init__(self, upkeep: Upkeep, every_s: float = 600.0) -> None:
        super().__init__("holdfast-housekeeping")
        self._upkeep = upkeep
        self._every_s = every_s
        self._next_at = upkeep.now() + int(every_s * MICRO)

    async def once(self) -> None:
        now = self._upkeep.now()
        if now >= self._next_at:
            self._next_at = now + int(self._every_s * MICRO)
            await self._prune()

    async def _prune(self) -> None:
        """Page by page: others get their turn in between."""
        more = True
        while more:
            more = await self._upkeep.prune()
        while await self._upkeep.remove_closed():
            pass

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._prune()
