"""Calls that want what somebody else holds for long, set aside so that all others need not wait with them.

The engine's own transactions last milliseconds. An application that joins one of its own may hold an execution for as
long as it likes: whoever wants that execution is tried again from time to time, alone, until the deadline.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from holdfast.store.protocol import Batch

_FIRST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 0.1


class LockWaiter(NamedTuple):
    batch: Batch
    give_up_at: float


class LockWaiters:
    """In the order in which they came. Times are those of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[LockWaiter] = deque()
        self._pause_s = _FIRST_PAUSE_S
        self.next_at = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, batch: Batch, give_up_at: float) -> None:
        self._waiting.append(LockWaiter(batch, give_up_at))

    def take(self) -> LockWaiter:
        return self._waiting.popleft()

    def end_pass(self, now: float, *, moved: bool) -> None:
        """The next one comes later, unless this one has moved something."""
        self._pause_s = _FIRST_PAUSE_S if moved or not self._waiting else min(self._pause_s * 2, _LONGEST_PAUSE_S)
        self.next_at = now + self._pause_s
