"""Removing the rows of orgs that were deleted: a page in each transaction, so that others get their turn.

What is to be done stands in the database: a process that dies leaves the rest to the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.engine.keys.orgs import Finish, Purge
from holdfast.model.keys import Deletion
from holdfast.model.values import MICRO
from holdfast.store import reads

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

PAGE: Final = 200
GRACE: Final = 5 * MICRO
"""Sessions and streams of the org end within a few seconds of its keys: what they write until then is removed, too."""


class Deleting:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    async def page(self) -> bool:
        """One page of each org that is due; whether there is more to do at once."""
        engine, more = self._engine, False
        for deletion in await engine.store.read(reads.Select(Deletion)):
            if engine.store.clock() < deletion.since_at + GRACE:
                continue
            await engine.queue.submit(Purge((deletion.org, PAGE)))
            if await engine.store.read(reads.HoldsAny(deletion.org)):
                more = True
            else:
                await engine.queue.submit(Finish(deletion.org, engine.keys.chain))
        return more
