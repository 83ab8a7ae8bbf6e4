"""What is paused, as this process knows it: the desk hands out nothing of it.

The database knows; the desk has a copy, read again whenever somebody has written there and after every change made
here. So a pause counts in the process that was asked as soon as it is answered, and in the others as soon as they
notice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.contract.deployments import ChangePause, PauseAnswer
from holdfast.engine.key_facade import shown
from holdfast.engine.pauses.change import Change
from holdfast.errors import InvalidRequest
from holdfast.model.pauses import Pausable
from holdfast.model.validation import check_name, check_text

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

LONGEST_REASON = 1_000


class PauseSync:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._reading = asyncio.Lock()

    async def poll_changes(self) -> None:
        """Somebody else has written. Who hands out nothing need not know."""
        if self._engine.dispatcher.sessions:
            await self.refresh()

    async def refresh(self) -> None:
        """One after another: an older answer must not replace a newer one."""
        async with self._reading:
            self._engine.dispatcher.apply_pauses(await self._engine.store.pauses())

    async def change(self, request: ChangePause) -> PauseAnswer:
        check_name(request.name, "queue" if request.what is Pausable.QUEUE else "worker_id")
        check_text(request.reason, "reason")
        if len(request.reason) > LONGEST_REASON:
            raise InvalidRequest(f"reason must have at most {LONGEST_REASON} characters", field="reason")
        engine = self._engine
        answer = await engine.queue.submit(Change(shown(request), engine.keys.chain))
        await self.refresh()
        # Batches run one after another: when this one is done, so is all that was planned before the desk knew.
        await engine.upkeep.claim()
        return answer
