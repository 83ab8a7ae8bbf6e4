"""What all services share: a task that can be started and stopped, and one round of its work on request.

A service runs for as long as its engine does. What it finds wrong (a database that is gone, a standby, one that lets
nobody in; a bug) is told, and it goes on a little later: a node whose timers no longer fire looks alive and is not.
"""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar, Final

from holdfast.errors import NOT_NOW, EngineStopped

log = logging.getLogger("holdfast.services")

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
WELL_AFTER_S: Final = 60.0


class Service:
    TIMELY: ClassVar[bool] = True
    """Whether it has to look at every due instant. What can be done some time later need not."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._task: asyncio.Task[None] | None = None

    async def once(self) -> None:
        """Do what there is to do at this instant. For those who own the clock and start no loop: the testing kit."""
        raise NotImplementedError

    async def run(self) -> None:
        """Do it again and again, at the right times. Begun anew after whatever it raises."""
        raise NotImplementedError

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run_on(), name=self._name)

    async def _run_on(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = FIRST_PAUSE_S
        while True:
            began_at = loop.time()
            try:
                await self.run()
            except EngineStopped:
                return
            except NOT_NOW as error:
                log.warning("%s waits: %s", self._name, error)
            except Exception:
                log.exception("%s goes on after an error", self._name)
            if loop.time() - began_at > WELL_AFTER_S:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
