"""Removing the rows of orgs that were deleted: a page in each transaction, so that others get their turn.

What is to be done stands in the database: a process that dies leaves the rest to the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.engine.keys.orgs import Finish, Purge
from holdfast.model.values import MICRO

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

PAGE: Final = 200
GRACE: Final = 5 * MICRO
"""Sessions and streams of the org end within a few seconds of its keys: what they write until then is removed, too."""


class OrgDeletion:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    async def page(self) -> bool:
        """One page of each org that is due; whether there is more to do at once."""
        engine, more = self._engine, False
        for org, since_at in await engine.store.deletions():
            if engine.store.clock() < since_at + GRACE:
                continue
            await engine.queue.submit(Purge((org, PAGE)))
            if await engine.store.holds_any(org):
                more = True
            else:
                await engine.queue.submit(Finish(org, engine.keys.chain))
        return more
