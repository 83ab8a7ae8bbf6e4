"""One limit for all calls, watched by one timer: a call costs an entry in a table instead of a timer of its own."""

from __future__ import annotations

import asyncio
from typing import Any


class Watched:
    """A call that runs. `expired` once its time was up and it was cancelled for that."""

    __slots__ = ("due_at", "expired", "task")

    def __init__(self, task: asyncio.Task[Any], due_at: float) -> None:
        self.task = task
        self.due_at = due_at
        self.expired = False


class Deadlines:
    """Calls are entered as they begin, so they are due in the order of the table."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._running: dict[Watched, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> Watched:
        """The current task is cancelled, once, unless `end` comes first."""
        task = asyncio.current_task()
        assert task is not None, "a call runs in a task"
        loop = task.get_loop()
        watched = Watched(task, loop.time() + self.limit_s)
        self._running[watched] = None
        if self._timer is None:
            self._timer = loop.call_at(watched.due_at, self._check, loop)
        return watched

    def end(self, watched: Watched) -> None:
        self._running.pop(watched, None)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self._timer = None
        for watched in list(self._running):
            if watched.due_at > now:
                self._timer = loop.call_at(watched.due_at, self._check, loop)
                return
            del self._running[watched]
            watched.expired = True
            watched.task.cancel()
