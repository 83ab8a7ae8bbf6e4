"""What commits leave to do on the event loop: callers to answer, then work to hand to workers.

Where the writer is a task of the same loop, loop and database would take turns: everybody waits for the one commit,
then the database waits for everybody. So what a commit leaves is done while the next batch is written, which is when
the database is busy for longest; and a portion at a time, so that the writer goes on as soon as it can. While a batch
is loaded, only what was left before is gone on with. Nothing is left for long: when no batch follows, or the database
is slow, it is done at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

log = logging.getLogger("holdfast.engine")

MAX_DELAY_S: Final = 0.02

Chunks = Iterator[None]
"""Does a portion whenever it is asked for the next one."""


def run_next(left: Chunks) -> bool:
    """Whether there was another portion. One that breaks is the last."""
    try:
        next(left)
    except StopIteration:
        return False
    except Exception:
        log.exception("a committed batch could not be answered in full")
        return False
    return True


def run_all(left: Chunks) -> None:
    while run_next(left):
        pass


class PostCommitQueue:
    """Belongs to the event loop. Everything is done in the order in which it was left."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left: deque[Chunks] = deque()
        self._newest = 0  # how many of them the last commit has left
        self._held = 0  # how many of the last ones have to wait
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, *left: Chunks) -> None:
        """What a commit leaves: it waits for the next batch to be written."""
        self._left.extend(left)
        self._newest = self._held = len(left)
        if self._timer is None:
            self._timer = self._loop.call_later(MAX_DELAY_S, self._on_delay_over)

    def writer_idle(self, *, writing: bool) -> None:
        """The writer waits now: for what it loads, or for what it writes."""
        self._held = 0 if writing else self._newest
        self._schedule()

    def run_soon(self) -> None:
        """No batch follows."""
        self._held = 0
        self._schedule()

    def run_all(self) -> None:
        while self._left:
            run_all(self._left.popleft())
        self._cancel_timer()

    def _schedule(self) -> None:
        if not self._scheduled and len(self._left) > self._held:
            self._scheduled = True
            self._loop.call_soon(self._run_some)

    def _run_some(self) -> None:
        """One portion; whoever it has woken, and the writer, come before the next."""
        self._scheduled = False
        if len(self._left) > self._held:
            self._run_one()
        if not self._left:
            self._cancel_timer()
        self._schedule()

    def _run_one(self) -> None:
        if not run_next(self._left[0]):
            self._left.popleft()

    def _on_delay_over(self) -> None:
        self._timer = None
        self.run_soon()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
