"""A store that knows whether anything is on its way to or from the database, and tells when nothing is any more."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

from holdfast.model.events import HistoryEvent
from holdfast.store.protocol import Batch, BatchSource, Store


class WatchedStore:
    """Another store with a witness. Everything but `open`, `wake` and `history` is the other store's own.

    The engine wakes its store for every operation, and the writer takes batches until there are none. So when a take
    comes back empty, everything that was handed in before it is answered; the news of it reaches the loop after the
    answers, because it is sent after them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._handed_in = 0
        self._lock = threading.Lock()
        self._answered = 0
        self._reads = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def open(self, source: BatchSource) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        await self._store.open(_WatchedSource(self, source))

    def wake(self) -> None:
        with self._lock:
            self._handed_in += 1
        self._store.wake()

    async def history(self, *args: Any, **options: Any) -> list[HistoryEvent]:
        """Counted: a worker that rebuilds a program waits for nothing else."""
        self._reads += 1
        try:
            return await self._store.history(*args, **options)
        finally:
            self._reads -= 1
            self._notify()

    @property
    def handed_in(self) -> int:
        return self._handed_in

    @property
    def quiet(self) -> bool:
        return self._answered == self._handed_in and not self._reads

    async def until_quiet(self) -> None:
        while not self.quiet:
            waiter = self._loop.create_future()
            self._waiting.append(waiter)
            await waiter

    def drained(self, handed_in: int) -> None:
        """From the writer: everything up to this number is answered."""
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._note, handed_in)
            return
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note, handed_in)

    def _note(self, handed_in: int) -> None:
        self._answered = max(self._answered, handed_in)
        self._notify()

    def _notify(self) -> None:
        if self.quiet:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)


class _WatchedSource:
    """The engine's queue, as the writer sees it."""

    def __init__(self, store: WatchedStore, source: BatchSource) -> None:
        self._store = store
        self._source = source
        self._notified = 0

    def take(self) -> Batch | None:
        # Before looking: what is handed in later is not answered by this.
        handed_in = self._store.handed_in
        batch = self._source.take()
        # Waking the loop costs a system call: only when there is something to tell.
        if batch is None and handed_in != self._notified:
            self._notified = handed_in
            self._store.drained(handed_in)
        return batch

    def writer_idle(self, *, writing: bool) -> None:
        self._source.writer_idle(writing=writing)

    def data_loss_detected(self) -> None:
        self._source.data_loss_detected()

    def refuse_late(self, before: float, error: Exception) -> None:
        self._source.refuse_late(before, error)
