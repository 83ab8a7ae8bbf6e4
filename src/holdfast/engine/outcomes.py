"""Who waits for the end of an execution, and how the latest ones ended."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from holdfast.engine.rules.workspace import Outcome

Key = tuple[str, str]
"""Org and execution id."""

REMEMBERED = 4_096
REMEMBERED_BYTES = 16_384
KNOWN_OPEN = 100_000


class Outcomes:
    """All on the event loop. A few thousand recent outcomes are remembered, small results only, to spare a read."""

    def __init__(self) -> None:
        self._recent: OrderedDict[Key, Outcome] = OrderedDict()
        self._open: set[Key] = set()
        self.doubts = 0
        """How often it was learned that another process has written."""
        self._waiting: dict[Key, list[asyncio.Future[Outcome]]] = {}

    def opened(self, keys: Iterable[Key], doubts: int) -> None:
        """Begun by this process, by a decision made after so many doubts. If there has been another since, somebody
        may have closed them already, and whoever looked for ends then has not looked for these."""
        if doubts == self.doubts and len(self._open) < KNOWN_OPEN:
            self._open.update(keys)

    def known_open(self, key: Key) -> bool:
        return key in self._open

    def doubt(self) -> None:
        """Another process has written: it may have closed what was known to be open."""
        self.doubts += 1
        self._open.clear()

    @property
    def awaited(self) -> list[Key]:
        return list(self._waiting)

    def recent(self, key: Key) -> Outcome | None:
        return self._recent.get(key)

    def wait(self, key: Key, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Outcome]:
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.setdefault(key, []).append(future)
        return future

    def forget(self, key: Key, future: asyncio.Future[Outcome]) -> None:
        """The waiter has gone away."""
        futures = self._waiting.get(key)
        if futures is not None and future in futures:
            futures.remove(future)
            if not futures:
                del self._waiting[key]

    def closed(self, ends: Iterable[tuple[Key, Outcome]]) -> None:
        for key, outcome in ends:
            self._open.discard(key)
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                self._remember(key, outcome)
                continue
            for future in waiting:
                if not future.done():
                    future.set_result(outcome)

    def _remember(self, key: Key, outcome: Outcome) -> None:
        """For whoever asks a little later."""
        result = getattr(outcome.last_event.body, "result", b"")
        if len(memoryview(result)) <= REMEMBERED_BYTES:
            self._recent[key] = outcome
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)

    def stop(self, error: BaseException) -> None:
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        self._waiting.clear()
