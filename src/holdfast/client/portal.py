"""The way from any thread to the event loop that owns the engine, and what every blocking face is made of.

A blocking call is the async one, run on that loop while the calling thread waits. There is one implementation of
everything; the blocking classes in `sync.py` only forward, and are generated.

Promises: an exception reaches the caller as it was raised; Ctrl-C ends the wait and cancels the call; when the engine
stops, every waiting call ends with EngineStopped; a call that could never be answered is refused instead of hanging.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from holdfast.errors import EngineForked, EngineStopped, InvalidRequest, WouldDeadlock

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")

CHECK_S = 1.0  # how often a waiting call looks whether its loop is still there; only a loop that died needs that
_END: Any = object()


class Portal:
    """Open while the engine runs. Any number of threads may call at once."""

    __slots__ = ("_lock", "_loop", "_pid", "_thread", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = self._thread = 0
        self._waiting: set[Future[Any]] = set()

    def open(self) -> None:
        """Calls are answered by the running loop from now on."""
        self._lock, self._waiting = threading.Lock(), set()  # after a fork the old lock may be held for ever
        self._loop, self._thread, self._pid = asyncio.get_running_loop(), threading.get_ident(), os.getpid()

    def close(self) -> None:
        """No more calls; those that still wait end with EngineStopped."""
        with self._lock:
            self._loop = None
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()

    def call(self, method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an async method on the loop and wait for its answer."""
        loop = self._usable_loop()
        if threading.get_ident() == self._thread:
            raise WouldDeadlock(
                f"{_name(method)}() was called blocking on the thread of the engine's event loop, which would have to "
                "answer it: there, await the async client"
            )
        # Here before anything is asked for: an interrupt may come at any moment, and must find what to cancel.
        future: Future[T] = Future()
        try:
            self._post(partial(method, *args, **kwargs), future, loop)
            return _answer(future, loop)
        except CancelledError:
            raise EngineStopped(f"the engine was shut down while {_name(method)}() waited") from None
        finally:
            if not loop.is_closed():
                future.cancel()  # does nothing once it is done; a wait that was interrupted ends on the loop as well
            del future  # it holds the exception, whose traceback holds this frame

    def call_using(self, using: Any, method: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """With a connection of the caller's, which belongs to its thread, run the async method here, in one go: it has
        nothing to wait for. Without one, `call`."""
        if using is None:
            return self.call(method, *args, **kwargs)
        self._usable_loop()
        if hasattr(using, "__aenter__"):
            raise InvalidRequest(
                f"{type(using).__name__} belongs to async code: with the blocking client, use a connection that blocks",
                field="using",
            )
        running = method(*args, **kwargs).__await__()
        try:
            next(running)
        except StopIteration as done:
            answer: T = done.value
            return answer
        running.close()
        raise WouldDeadlock(f"{_name(method)}() would wait for the engine while your transaction keeps it from writing")

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """An async iterator as a plain one, an item at a time."""
        try:
            while (item := self.call(anext, source, _END)) is not _END:
                yield item
        finally:
            self._abandon(source)

    def _abandon(self, source: AsyncIterator[Any]) -> None:
        """End an async generator that was left half-way. Nobody waits: the garbage collector may be calling, on any
        thread."""
        close = getattr(source, "aclose", None)
        if close is not None:
            with suppress(EngineStopped):
                self._post(close, Future(), self._usable_loop())

    def _usable_loop(self) -> asyncio.AbstractEventLoop:
        if self._pid not in {0, os.getpid()}:
            raise EngineForked(
                f"the engine runs in process {self._pid}, and this is a child forked from it: start an engine in each "
                "process after the fork (gunicorn: in post_fork, or without --preload)"
            )
        if self._loop is None:
            raise EngineStopped(
                "the engine is not running: use it inside `with SyncEngine(...)` or between its open() and shutdown()"
            )
        return self._loop

    def _post(self, work: Callable[[], Awaitable[T]], future: Future[T], loop: asyncio.AbstractEventLoop) -> None:
        """Have the work done on the loop. `future` gets its answer, and cancels it when it is cancelled."""
        with self._lock:
            if self._loop is not loop:
                raise EngineStopped
            self._waiting.add(future)
            try:
                loop.call_soon_threadsafe(_start, work, future)
            except RuntimeError:  # its loop was closed since we looked
                self._waiting.discard(future)
                raise EngineStopped from None
        future.add_done_callback(self._waiting.discard)


def _start(work: Callable[[], Awaitable[T]], future: Future[T]) -> None:
    """On the loop. Whoever has gone away before is not waited for."""
    if future.cancelled():
        return

    async def run() -> T:
        return await work()

    loop = asyncio.get_running_loop()
    task = loop.create_task(run())
    task.add_done_callback(partial(_hand_over, future))

    def gone(ended: Future[T]) -> None:
        if ended.cancelled():
            with suppress(RuntimeError):  # the loop is closed, and the task with it
                loop.call_soon_threadsafe(task.cancel)

    future.add_done_callback(gone)


def _hand_over(future: Future[T], task: asyncio.Task[T]) -> None:
    # Looked at in any case: an exception that nobody has looked at is complained of.
    error = None if task.cancelled() else task.exception()
    with suppress(InvalidStateError):  # the caller has gone away in this moment
        if task.cancelled():
            future.cancel()
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())


def _answer(future: Future[T], loop: asyncio.AbstractEventLoop) -> T:
    while True:
        try:
            return future.result(CHECK_S)
        except TimeoutError:
            if future.done():
                return future.result()  # the call's own time-out, or an answer that came in this moment
            if loop.is_closed():
                raise CancelledError from None


def _name(method: Callable[..., Any]) -> str:
    return str(getattr(method, "__name__", method))


class SyncFacade(Generic[A]):
    """The blocking face of an async object. The subclasses are generated."""

    __slots__ = ("_portal", "_wrapped")

    def __init__(self, portal: Portal, wrapped: A) -> None:
        self._portal = portal
        self._wrapped = wrapped

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._wrapped!r}>"
