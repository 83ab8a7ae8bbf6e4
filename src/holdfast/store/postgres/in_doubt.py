"""A COMMIT that has not been answered: who waits for it is told when it takes too long, while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

_AGAIN_S: Final = 0.5


class InDoubtCommit:
    """While its block lasts, `notify` is called at the given moment of the loop's clock and again and again after it:
    whoever comes later has a later deadline. `notified` is true from the second time on; `why` is the last that is
    known.
    """

    __slots__ = ("_loop", "_notify", "_timer", "notified", "why")

    def __init__(self, at: float, notify: Callable[[InDoubtCommit], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._notify = notify
        self._timer = self._loop.call_at(at, self._time_is_up)
        self.notified = False
        self.why = "it does not answer"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()

    def _time_is_up(self) -> None:
        self._timer = self._loop.call_later(_AGAIN_S, self._time_is_up)
        self._notify(self)
        self.notified = True
