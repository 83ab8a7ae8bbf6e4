"""What commits leave to do on the event loop: callers to answer, then work to hand to workers.

Where the writer is a task of the same loop, loop and database would take turns: everybody waits for the one commit,
then the database waits for everybody. So the writer says when it waits, and that is when the leavings of the commit
before are done: callers are answered while the next batch loads, workers run while it is written. Nothing is left for
long: when no batch follows, or the database is slow, it is all done at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

log = logging.getLogger("holdfast.engine")

PATIENCE_S: Final = 0.02

Deed = Callable[[], object]


class Leftovers:
    """Belongs to the event loop. Everything is done in the order in which it was left."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left: deque[Deed] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, answer: Deed, hand_out: Deed) -> None:
        self._left.append(answer)
        self._left.append(hand_out)
        if self._timer is None:
            self._timer = self._loop.call_later(PATIENCE_S, self.do_all)

    def meanwhile(self, *, writing: bool) -> None:
        """The writer waits now: for what it loads, or for what it writes."""
        if self._left:
            self._loop.call_soon(self.do_all if writing else self._do_all_but_one)

    def soon(self) -> None:
        """No batch follows."""
        if self._left:
            self._loop.call_soon(self.do_all)

    def do_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._do(0)

    def _do_all_but_one(self) -> None:
        """The last work is handed out later."""
        self._do(1)

    def _do(self, keep: int) -> None:
        left = self._left
        while len(left) > keep:
            deed = left.popleft()
            try:
                deed()
            except Exception:
                log.exception("a committed batch could not be answered in full")
