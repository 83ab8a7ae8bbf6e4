"""Threads for `def` bodies. Daemons of our own: the interpreter would wait at its end for those of an executor, however
long their bodies take, although their work has been handed back to others by then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

Job = Callable[[], None]


class TaskThreads:
    """At most `limit` threads, made when they are needed, fed from one queue."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._lock = threading.Lock()

    def call(
        self, loop: asyncio.AbstractEventLoop, fn: Callable[..., Any], args: tuple[Any, ...]
    ) -> asyncio.Future[Any]:
        """Call `fn` in a thread, in a copy of the caller's context; its outcome arrives on the loop."""
        future: asyncio.Future[Any] = loop.create_future()
        context = copy_context()

        def job() -> None:
            try:
                result, error = context.run(fn, *args), None
            except BaseException as raised:  # noqa: BLE001 - handed to whoever awaits the future
                result, error = None, raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future, result, error)

        with self._lock:
            self._busy += 1
            if self._busy > self._threads and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name=f"holdfast-body-{self._threads}", daemon=True).start()
        self._jobs.put(job)
        return future

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._busy -= 1

    def close(self) -> None:
        """Idle threads end; a body that still runs is left to itself."""
        for _ in range(self._threads):
            self._jobs.put(None)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        # A future refuses to carry it: asyncio would take it for the end of a coroutine.
        future.set_exception(RuntimeError(f"the body raised StopIteration: {error}"))
    else:
        future.set_exception(error)
