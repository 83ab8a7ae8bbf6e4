"""`SyncEngine`: an `Engine` on a loop of its own, in a thread of its own.

Owns: that thread, from `open` to `shutdown`, and its end when Python exits.
Promises: the engine is shut down in order however the program ends, short of a crash. A process forked from one with a
running engine gets a clear error: it has no such thread, and must not open the same file, because SQLite keeps the
locks of a process in its memory, which the child has inherited.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from holdfast.assembly import Engine
from holdfast.client.sync import SyncClient
from holdfast.config import EngineConfig
from holdfast.errors import EngineForked, WouldDeadlock
from holdfast.sync.shortcuts import EngineShortcuts

_LOGGER = logging.getLogger("holdfast.engine")


class SyncEngine(EngineShortcuts):
    """Engine, services and worker in a background thread, for Django, Flask and scripts.

    Use it as `with SyncEngine("sqlite:///app.db", workflows=[...], tasks=[...]) as engine`, or call `open()` once
    per process, and `shutdown()` at its end. `client` and the other methods may be called from any thread.
    """

    __slots__ = ("_lock", "_make", "_running", "_url", "_used")

    def __init__(
        self,
        url: str = "sqlite:///holdfast.db",
        *,
        workflows: Iterable[Callable[..., Any]] = (),
        tasks: Iterable[Callable[..., Any]] = (),
        config: EngineConfig | None = None,
        org: str = "default",
    ) -> None:
        workflows, tasks = tuple(workflows), tuple(tasks)

        def make() -> Engine:
            return Engine(url, workflows=workflows, tasks=tasks, config=config, org=org)

        self._url = url
        self._make = make
        self._lock = threading.Lock()
        self._used = False
        self._running: _Running | None = None
        self._use(make())  # opens nothing yet, but refuses what can't work

    def _use(self, engine: Engine) -> None:
        super().__init__(engine.client.portal, engine)

    def __repr__(self) -> str:
        return f"SyncEngine({'running' if self._running is not None else 'not running'})"

    @property
    def client(self) -> SyncClient:
        """The way in. Its methods block until the engine has answered."""
        return self._wrapped.client.sync

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def open(self) -> None:
        """Start the thread, open the database and begin to work. Does nothing if the engine is running.

        After `shutdown` it begins afresh.
        """
        _refuse_inherited(self._url)
        with self._lock:
            if self._running is not None and self._running.is_alive:
                return
            if self._used:
                self._use(self._make())  # an engine that was used once is not used again
            self._used = True
            running = _Running(self._wrapped, self._url)
            running.start()
            self._running = running

    def shutdown(self) -> None:
        """Stop in order, as `Engine.shutdown` does, and wait until that is done. Calls that wait get EngineStopped."""
        running = self._running
        if running is None or running.pid != os.getpid():  # a forked child has nothing to shut down
            return
        running.stop()  # without the lock: it may take a while
        with self._lock:
            if self._running is running:
                self._running = None


class _Running:
    """One life of an engine: the thread and the loop in it."""

    def __init__(self, engine: Engine, url: str) -> None:
        self.url = url
        self.pid = os.getpid()
        self._engine = engine
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="holdfast-engine", daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Come back when the engine runs; raises what kept it from that."""
        _ALIVE.append(self)
        self._thread.start()
        try:
            self._started.result()
        except BaseException:  # Ctrl-C among them
            self.stop()
            raise

    def stop(self) -> None:
        if threading.current_thread() is self._thread:
            raise WouldDeadlock("shutdown() was called blocking on the thread of the engine's event loop")
        if self._started.exception() is None:
            loop, stop = self._started.result()
            with suppress(RuntimeError):  # the loop is closed: it has ended already
                loop.call_soon_threadsafe(stop.set)
        self._thread.join()
        with suppress(ValueError):  # somebody else has stopped it, too
            _ALIVE.remove(self)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:
            if self._started.done():
                _LOGGER.exception("the engine's thread has ended with an error")
            else:
                self._started.set_exception(error)
        finally:
            self._engine.client.portal.close()

    async def _live(self) -> None:
        stop = asyncio.Event()
        async with self._engine:
            self._started.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()


# --- the end of the process ---------------------------------------------------------------------------------------

_ALIVE: list[_Running] = []
"""What runs in this process and, after a fork, what ran in its parent then."""


def _refuse_inherited(url: str) -> None:
    if url == "sqlite://":  # in memory: each has its own
        return
    for running in _ALIVE:
        if running.pid != os.getpid() and running.url == url:
            raise EngineForked(
                f"an engine on {url} was running in process {running.pid} when this one was forked from it: start "
                "engines after the fork only (gunicorn: in post_fork, or without --preload)"
            )


def _stop_all() -> None:
    for running in [each for each in _ALIVE if each.pid == os.getpid()]:
        running.stop()


# Before Python closes its thread pools, which an orderly end needs: `atexit` proper would be too late for that.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
