"""What the commands that run until they are stopped share: signals, the log, and the worker's settings."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

import click

from holdfast.cli.exit_codes import DONE, INTERRUPTED
from holdfast.config import EngineConfig, StoreConfig, WorkerConfig

T = TypeVar("T")
TOGETHER_S = 0.5
_STOPS = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def stop_signals() -> AsyncIterator[asyncio.Event]:
    """An event that is set by the first Ctrl-C or SIGTERM; one more ends the process at once. Two that come together
    are one: some send a signal to a process and to its group."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    stopped_at = 0.0

    def stop() -> None:
        nonlocal stopped_at
        if not stopped.is_set():
            stopped_at = loop.time()
        elif loop.time() - stopped_at > TOGETHER_S:
            print("stopped at once; what was running is taken over by another worker", file=sys.stderr, flush=True)
            os._exit(INTERRUPTED)
        stopped.set()

    before = {}
    for name in _STOPS:
        try:
            loop.add_signal_handler(name, stop)
        except (NotImplementedError, RuntimeError):  # Windows
            before[name] = signal.signal(name, lambda *_: loop.call_soon_threadsafe(stop))
    try:
        yield stopped
    finally:
        for name in _STOPS:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(name)
        for name, handler in before.items():
            signal.signal(name, handler)


async def started(running: AbstractAsyncContextManager[T], opened: AsyncExitStack, stopped: asyncio.Event) -> T:
    """Enter `running`. Whoever stops it while it still waits for its database does not wait, too: then it is over."""
    try:
        async with asyncio.timeout(None) as wait:
            watching = asyncio.create_task(_end_when(stopped, wait))
            try:
                return await opened.enter_async_context(running)
            finally:
                watching.cancel()
    except TimeoutError:
        if not wait.expired():
            raise
        asyncio.get_running_loop().set_exception_handler(_not_of_connections)
        click.echo("stopped before it had begun", err=True)
        raise click.exceptions.Exit(DONE) from None


def _not_of_connections(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A driver that is stopped while it connects leaves a future behind that nobody asks."""
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


async def _end_when(stopped: asyncio.Event, wait: asyncio.Timeout) -> None:
    await stopped.wait()
    wait.reschedule(asyncio.get_running_loop().time())


def run_fast(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on uvloop where that is installed: for processes that run no code of the application's."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def hand_over_soon() -> None:
    """For a worker of a server: its reports leave in a thread of their own, which else waits up to 5 ms for the event
    loop's while the server has nothing to do."""
    sys.setswitchinterval(0.001)


def show_log(*, verbose: bool) -> None:
    """The log of the application and the engine on standard error, unless the application has set one up."""
    if logging.getLogger().handlers:
        return
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        datefmt="%H:%M:%S",
        stream=sys.stderr,
    )
    if not verbose:
        logging.getLogger("holdfast.access").setLevel(
            logging.WARNING
        )  # a line for every request is for who asks for it


def engine_config(
    *,
    queues: tuple[str, ...] = (),
    turn_slots: int | None = None,
    task_slots: int | None = None,
    grace_s: float | None = None,
    migrate: bool = True,
    require_sync: bool = False,
    keep_closed_s: float | None = None,
) -> EngineConfig:
    """The defaults, but for what was said."""
    base = WorkerConfig()
    worker = WorkerConfig(
        queues=queues or base.queues,
        turn_slots=base.turn_slots if turn_slots is None else turn_slots,
        task_slots=base.task_slots if task_slots is None else task_slots,
        shutdown_grace_s=base.shutdown_grace_s if grace_s is None else grace_s,
    )
    store = StoreConfig(migrate=migrate, require_sync=require_sync)
    return EngineConfig(store=store, worker=worker, closed_retention_s=keep_closed_s)
