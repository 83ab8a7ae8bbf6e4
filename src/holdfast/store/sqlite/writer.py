"""The writer thread: the only one that writes, one batch after another, for as long as the source has any."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from random import uniform
from typing import Final

from holdfast.store.protocol import BatchSource
from holdfast.store.sqlite.checkpoints import IDLE_S, Checkpoints
from holdfast.store.sqlite.connections import Database
from holdfast.store.sqlite.transactions import Transactions

_log = logging.getLogger("holdfast.store")

Connect = Callable[[], sqlite3.Connection]
Job = Callable[[Connect], None]

# Long enough for a process that waits for the lock to get it, short enough not to be noticed.
_YIELD_S: Final = 0.000_6


class Writer:
    """Started and stopped from the event loop; `wake` may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._transactions = Transactions(database)
        self._checkpoints = Checkpoints(database)
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._awake = False
        self._jobs: deque[Job] = deque()
        self._stopping = False
        self._thread: threading.Thread | None = None

    async def start(self, source: BatchSource) -> None:
        """Returns when the database is open and its schema up to date; raises what kept it from being so."""
        loop = asyncio.get_running_loop()
        opened = loop.create_future()
        self._stopping = self._awake = False
        self._thread = threading.Thread(
            target=self._run, args=(source, loop, opened), name="holdfast-writer", daemon=True
        )
        self._thread.start()
        await asyncio.shield(opened)

    async def stop(self) -> None:
        """Write what is waiting, then close the database."""
        self._stopping = True
        self._wakes.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    def wake(self) -> None:
        """The source has work. One token in the queue is enough, however many callers there are."""
        if not self._awake:
            self._awake = True
            self._wakes.put(None)

    def post(self, job: Job) -> None:
        """Run this on the writer's connection between two batches."""
        self._jobs.append(job)
        self.wake()

    def changed_elsewhere(self, _: sqlite3.Connection) -> bool:
        """A job for `post`."""
        return self._transactions.changed_elsewhere()

    def _connect(self) -> sqlite3.Connection:
        return self._transactions.connection

    def _run(self, source: BatchSource, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]) -> None:
        try:
            _ = self._transactions.connection
        except Exception as error:  # noqa: BLE001 - told to the caller of `start`
            loop.call_soon_threadsafe(_settle, opened, error)
            return
        loop.call_soon_threadsafe(_settle, opened, None)
        try:
            self._write_until_stopped(source)
        finally:
            self._checkpoints.close()
            self._transactions.close()

    def _write_until_stopped(self, source: BatchSource) -> None:
        while True:
            self._sleep()
            # Both before looking: what is handed in from now on wakes the thread again.
            self._awake = False
            stopping = self._stopping
            try:
                self._work(source)
            except Exception:  # noqa: BLE001 - a bug in a batch must not end all writing
                _log.exception("the writer of %s goes on after an error", self._database.name)
            if stopping:
                return

    def _sleep(self) -> None:
        try:
            self._wakes.get(timeout=IDLE_S if self._checkpoints.pending else None)
        except Empty:
            if self._transactions.is_connected:
                self._checkpoints.run(self._transactions.connection)

    def _work(self, source: BatchSource) -> None:
        while True:
            while self._jobs:
                self._jobs.popleft()(self._connect)
            batch = source.take()
            if batch is None:
                return
            self._transactions.run(batch)
            if self._transactions.is_connected:
                self._checkpoints.after_commit(self._transactions.connection)
            if self._transactions.has_peers:
                time.sleep(uniform(0.5, 1.5) * _YIELD_S)  # noqa: S311 - jitter, not a secret


def _settle(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
