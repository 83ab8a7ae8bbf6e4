"""The SQLite store in memory without threads: its writer does its rounds on the event loop.

A test's database answers in a fraction of a millisecond. Carrying each operation to another thread and back would take
longer than doing it, and leave the order of things to the operating system.
"""

from __future__ import annotations

import asyncio
import logging
import threading

from holdfast.config import StoreConfig
from holdfast.store.protocol import BatchSource, Clock
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.writer import Writer

_log = logging.getLogger("holdfast.store")


class InlineWriter(Writer):
    """The same rounds as the writer's thread makes, asked for by `wake`."""

    async def start(self, source: BatchSource) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner = threading.get_ident()
        self._source = source
        _ = self._transactions.connection

    async def stop(self) -> None:
        self._round()
        self._checkpoints.close()
        self._transactions.close()

    def wake(self) -> None:
        if self._awake:
            return
        self._awake = True
        if threading.get_ident() == self._owner:
            self._loop.call_soon(self._round)
        else:
            self._loop.call_soon_threadsafe(self._round)

    def _round(self) -> None:
        # Before looking: what is handed in from now on asks for another round.
        self._awake = False
        try:
            self._work(self._source)
        except Exception:  # noqa: BLE001 - a bug in a batch must not end all writing
            _log.exception("the writer of a test's database goes on after an error")


class InlineStore(SqliteStore):
    """A database of its own in memory, used from one thread."""

    def __init__(self, config: StoreConfig, clock: Clock) -> None:
        super().__init__(None, config, clock)
        self._writer: Writer = InlineWriter(self._database)
