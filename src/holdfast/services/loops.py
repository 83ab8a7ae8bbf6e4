"""What all services share: a task that can be started and stopped, and one round of its work on request."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar

log = logging.getLogger("holdfast.services")


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
        """Do it again and again, at the right times."""
        raise NotImplementedError

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self.run(), name=self._name)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("%s has ended", self._name, exc_info=task.exception())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
