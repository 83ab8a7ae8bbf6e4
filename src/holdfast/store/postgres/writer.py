"""The writer: one task on the engine's loop that writes one batch after another, for as long as the source has any."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.transactions import Transactions
from holdfast.store.protocol import BatchSource, Clock

_log = logging.getLogger("holdfast.store")


class Writer:
    """Started and stopped from the event loop; `wake` may be called from any thread."""

    def __init__(self, database: Database, clock: Clock, on_commit: Callable[[], None]) -> None:
        self._database = database
        self.transactions = Transactions(database, clock)
        self._on_commit = on_commit
        self._awake = False
        self._stopping = False
        self._work: asyncio.Event
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, source: BatchSource) -> None:
        """Returns when the database is connected and its schema up to date; raises what kept it from being so."""
        self._loop = asyncio.get_running_loop()
        self._owner = threading.get_ident()
        self._work = asyncio.Event()
        self._stopping = self.transactions.stopping = False
        self.transactions.writer_idle = source.writer_idle
        self.transactions.data_loss_detected = source.data_loss_detected
        self.transactions.refuse_late = source.refuse_late
        await self.transactions.connect()
        self._task = self._loop.create_task(self._write_until_stopped(source), name="holdfast-writer")

    async def stop(self) -> None:
        """Write what is waiting, then disconnect."""
        self._stopping = self.transactions.stopping = True
        if self._task is not None:
            self._work.set()
            await self._task
            self._task = None
        self._loop = None
        await self.transactions.end()

    def wake(self) -> None:
        """The source has work. Once is enough, however many callers there are."""
        if self._awake or self._loop is None:
            return
        self._awake = True
        if threading.get_ident() == self._owner:
            self._work.set()
        else:
            self._loop.call_soon_threadsafe(self._work.set)

    async def _write_until_stopped(self, source: BatchSource) -> None:
        while True:
            await self._rest()
            # All three before looking: what is handed in from now on wakes the task again.
            self._work.clear()
            self._awake = False
            stopping = self._stopping
            try:
                await self._write_all(source)
            except Exception:  # noqa: BLE001 - a bug in a batch must not end all writing
                _log.exception("the writer of %s goes on after an error", self._database.name)
            if stopping:
                self.transactions.give_up()
                return

    async def _rest(self) -> None:
        """Until there is work, or it is time for those who were set aside."""
        again_at = self.transactions.again_at
        if again_at is None:
            await self._work.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(again_at):
                await self._work.wait()

    async def _write_all(self, source: BatchSource) -> None:
        while (batch := source.take()) is not None:
            if await self.transactions.run(batch):
                self._on_commit()
            if await self.transactions.run_again():
                self._on_commit()
        if await self.transactions.run_again():
            self._on_commit()
