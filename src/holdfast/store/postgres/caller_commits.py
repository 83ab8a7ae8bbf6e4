"""Waits for the end of transactions that belong to the application, to tell this node and the others of their commits.

The server is asked what became of them, all at once, less and less often the longer they last. A NOTIFY inside of them
would need no question, but it makes all commits of the server queue up behind one another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from holdfast.errors import EngineStopped, HoldfastError
from holdfast.store.postgres.notifications import Notifications
from holdfast.store.postgres.readers import Reads
from holdfast.store.postgres.statements import Connection
from holdfast.store.protocol import Batch

_log = logging.getLogger("holdfast.store")

_STATUS: Final = "SELECT xid, pg_xact_status(xid::xid8) FROM unnest($1::text[]) AS asked (xid)"
_FIRST_PAUSE_S: Final = 0.002
_LONGEST_PAUSE_S: Final = 0.25


class CallerCommitWatcher:
    """Made and stopped on the engine's loop; `add` may be called from any thread."""

    def __init__(self, reads: Reads, notifications: Notifications) -> None:
        self._reads = reads
        self._notifications = notifications
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, _Open] = {}
        self._added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def add(self, xid: str, batch: Batch) -> None:
        """`batch` hears of the commit of this transaction, on the loop. Of nothing else."""
        with suppress(RuntimeError):  # the loop is closed: what was written stands, and others find it
            self._loop.call_soon_threadsafe(self._add, xid, batch)

    async def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _add(self, xid: str, batch: Batch) -> None:
        if self._stopped:
            return
        entry = self._open.setdefault(xid, _Open())
        entry.batches.append(batch)
        entry.begin_anew(self._loop.time())
        self._added.set()
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._watch(), name="holdfast-joined-transactions")

    async def _watch(self) -> None:
        while self._open:
            await self._rest(min(entry.at for entry in self._open.values()))
            asked = [xid for xid, entry in self._open.items() if entry.is_time(self._loop.time())]
            try:
                found = await self._ask(asked)
            except EngineStopped:
                return
            except HoldfastError as error:
                # It is a hint: what was committed is found by looking around.
                _log.info("what became of joined transactions is not known: %s", error)
                found = dict.fromkeys(asked)
            self._end([xid for xid, status in found.items() if status != "in progress"], found)

    async def _rest(self, until: float) -> None:
        """Until then, or until there is one more to ask for."""
        self._added.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._added.wait()

    async def _ask(self, asked: Sequence[str]) -> dict[str, str | None]:
        async def status(connection: Connection) -> Any:
            return await connection.fetch(_STATUS, asked)

        return {row[0]: row[1] for row in await self._reads.run(status)} if asked else {}

    def _end(self, ended: Sequence[str], found: dict[str, str | None]) -> None:
        batches = [batch for xid in ended for batch in self._open.pop(xid).batches if found[xid] != "aborted"]
        if not batches:
            return
        self._notifications.notify_peers()
        self._notifications.on_notified()
        for batch in batches:
            batch.committed()


class _Open:
    """A transaction that had not ended when it was last asked for."""

    __slots__ = ("at", "batches", "pause_s")

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def begin_anew(self, now: float) -> None:
        """It has just done something: its end may be near."""
        self.pause_s = _FIRST_PAUSE_S
        self.at = now + self.pause_s

    def is_time(self, now: float) -> bool:
        """Whether to ask again; the next time it takes longer."""
        if now < self.at:
            return False
        self.pause_s = min(self.pause_s * 1.5, _LONGEST_PAUSE_S)
        self.at = now + self.pause_s
        return True
