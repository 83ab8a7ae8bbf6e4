"""Removing the rows of orgs that were deleted: a page in each transaction, so that others get their turn.

What is to be done stands in the database: a process that dies leaves the rest to the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast.engine.key_changes import FinishDeletion, Purge
from holdfast.engine.rules.keys import Act
from holdfast.engine.unit_of_work import OperationQueue
from holdfast.model.keys import Deletion
from holdfast.model.values import MICRO
from holdfast.store import reads
from holdfast.store.protocol import Store

PAGE: Final = 200
GRACE: Final = 5 * MICRO
"""Sessions and streams of the org end within a few seconds of its keys: what they write until then is removed, too."""


class Deleting:
    """`chain` gives the key of the audit log's digests."""

    def __init__(self, store: Store, queue: OperationQueue, chain: Callable[[], bytes]) -> None:
        self._store = store
        self._queue = queue
        self._chain = chain

    async def page(self) -> bool:
        """One page of each org that is due; whether there is more to do at once."""
        more = False
        for deletion in await self._store.read(reads.Select(Deletion)):
            org = deletion.org
            if self._store.clock() < deletion.since_at + GRACE:
                continue
            await self._queue.submit(Purge((org, PAGE)))
            if await self._store.read(reads.HoldsAny(org)):
                more = True
            else:
                act = Act(org=org, action="orgs.deleted", by=None, chain=self._chain())
                await self._queue.submit(FinishDeletion(act))
        return more
