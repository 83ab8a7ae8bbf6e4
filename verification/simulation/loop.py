"""An event loop on virtual time, whose callbacks belong to nodes that can be stopped, resumed and killed.

Nothing here waits: when nothing is ready the clock moves to the next instant at which something is. The order of things
follows from the program and the seed alone. Every callback runs in the context it was made in, and the context says
which node it belongs to: the callbacks of a stopped node are kept until it goes on, those of a dead one never run.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
MOST_STEPS = 10_000
"""Many times what a scenario takes."""


class Livelock(Exception):
    """The nodes keep each other busy for ever."""


class Process:
    """What callbacks belong to. Whether it runs, stands still or is dead."""

    def __init__(self) -> None:
        self.halted = False
        self.dead = False
        self.kept: list[Callback] = []

    def stop(self) -> None:
        self.halted = True

    def die(self) -> None:
        self.halted = self.dead = True
        self.kept.clear()


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)


class Callback(msgspec.Struct, eq=False):
    """What `call_soon` and `call_later` give: enough of asyncio.Handle for asyncio itself."""

    callback: Callable[..., object]
    args: tuple[Any, ...]
    context: Context
    when_s: float
    on_closed: bool = False

    def cancel(self) -> None:
        self.on_closed = True

    def cancelled(self) -> bool:
        return self.on_closed

    def when(self) -> float:
        return self.when_s


class SimulatedLoop(asyncio.AbstractEventLoop):
    """See the module's text. `errors` are exceptions that nobody has looked at."""

    def __init__(self) -> None:
        self.now_s = 0.0
        """As `time`, for those who ask often."""
        self._ready: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Callback]] = []
        self._numbers = count()
        self._closed = False
        self._tasks: list[asyncio.Task[Any]] = []
        self.errors: list[str] = []
        self.steps = 0

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self.now_s

    def call_soon(  # type: ignore[override]  # ours gives a Callback
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        made = Callback(callback, args, context if context is not None else copy_context(), self.now_s)
        self._ready.append(made)
        return made

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        when_s = self.now_s + delay if delay > 0 else self.now_s
        made = Callback(callback, args, context if context is not None else copy_context(), when_s)
        heapq.heappush(self._timers, (when_s, next(self._numbers), made))
        return made

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Callback:
        made = Callback(callback, args, context if context is not None else copy_context(), when)
        heapq.heappush(self._timers, (when, next(self._numbers), made))
        return made

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **_: Any
    ) -> asyncio.Task[Any]:
        # Named, or asyncio would make up a name for each.
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name or "task", context=context)
        # Held until the end: what is thrown away half-way must not run its last lines in the middle of something else.
        self._tasks.append(task)
        return task

    get_debug = bool  # False; every future asks, and this is the quickest way to say so

    def is_running(self) -> bool:
        return not self._closed

    def is_closed(self) -> bool:
        return self._closed

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    # --- running ---

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Until `main` has ended, whatever else is still under way."""
        asyncio._set_running_loop(self)  # noqa: SLF001 - the documented way for those who make loops
        try:
            task = self.create_task(main)
            while not task.done():
                if not self._ready:
                    self._move()
                self._run_ready()
            result: T = task.result()
            return result
        finally:
            self._closed = True
            asyncio._set_running_loop(None)  # noqa: SLF001 - as above
            self._forget()

    def _run_ready(self) -> None:
        """All that is to happen at this instant."""
        ready = self._ready
        take = ready.popleft
        steps = self.steps
        while ready:
            made = take()
            if made.on_closed:
                continue
            context = made.context
            process = context.get(PROCESS)
            if process is not None and process.halted:
                if not process.dead:
                    process.kept.append(made)
                continue
            steps += 1
            if steps > MOST_STEPS:
                raise Livelock(f"{MOST_STEPS} callbacks, at {self.now_s:.3f} s, and no end")
            context.run(made.callback, *made.args)
        self.steps = steps

    def _move(self) -> None:
        """To the next instant at which something is to happen, and everything of that instant."""
        timers = self._timers
        while timers and timers[0][2].on_closed:
            heapq.heappop(timers)
        if not timers:
            raise RuntimeError("nothing will ever happen again: the simulation waits for itself")
        now_s = self.now_s = max(self.now_s, timers[0][0])
        while timers and timers[0][0] <= now_s:
            made = heapq.heappop(timers)[2]
            if not made.on_closed:
                self._ready.append(made)

    def go_on(self, process: Process) -> None:
        """The process was stopped; it does now what it has missed."""
        if process.dead:
            return
        process.halted = False
        kept, process.kept = process.kept, []
        self._ready.extend(kept)

    def _forget(self) -> None:
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it is meant to be so
                _close(task.get_coro())
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()


def _close(coroutine: Any) -> None:
    """End what was under way. Whoever waits for something more on the way out is told again."""
    for _ in range(5):
        try:
            coroutine.close()
        except RuntimeError:
            continue
        return
