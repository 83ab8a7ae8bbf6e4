"""Due work: sleeps until the next timer, time-out or retry is due, and looks for expired sessions now and then.

It is told of new instants by the commits of this process; those of other processes are found by reading.
"""

from __future__ import annotations

import asyncio

from holdfast.contract.upkeep import Upkeep
from holdfast.model.values import MICRO
from holdfast.services.service import Service


class DueWorkService(Service):
    """`sessions_every_s`: how often to look for sessions that stopped reporting. What becomes due within `resolution_s`
    of the pass before is done together."""

    def __init__(self, upkeep: Upkeep, sessions_every_s: float, resolution_s: float) -> None:
        super().__init__("holdfast-due-work")
        self._upkeep = upkeep
        self._every = int(sessions_every_s * MICRO)
        self._resolution_s = resolution_s
        self._next_at = 0
        self._sleeping: asyncio.Future[bool] | None = None
        upkeep.watch_due(self._expect)

    def _expect(self, at: int) -> None:
        if at < self._next_at:
            self._next_at = at
            self._wake_up(True)

    async def once(self) -> None:
        more = True
        while more:
            # Asked for in one breath, so that one transaction does both.
            due, _ = await asyncio.gather(self._upkeep.run_due(), self._upkeep.claim())
            more = due.more

    async def run(self) -> None:
        while True:
            await self._pass()
            await self._sleep()

    async def _pass(self) -> None:
        upkeep = self._upkeep
        # Both before looking: an instant reported meanwhile is not overwritten by what was read before it, and what has
        # become due since then has not been looked at, although it has passed when the next instant is read.
        began_at = upkeep.now()
        self._next_at = began_at + self._every
        await self.once()
        due_at = await upkeep.next_due_at(began_at)
        if due_at is not None and due_at < self._next_at:
            self._next_at = due_at

    async def _sleep(self) -> None:
        """Until the next instant, which may move closer meanwhile."""
        await asyncio.sleep(self._resolution_s)
        loop = asyncio.get_running_loop()
        while (left_us := self._next_at - self._upkeep.now()) > 0:
            self._sleeping = loop.create_future()
            alarm = loop.call_later(left_us / MICRO, self._wake_up, False)
            try:
                sooner = await self._sleeping
            finally:
                alarm.cancel()
                self._sleeping = None
            if not sooner:
                return

    def _wake_up(self, sooner: bool) -> None:
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(sooner)
