"""Keys that were looked up a moment ago.

An answer counts for half a second from when its question was sent: a key that is revoked on another node is refused
here before a second has passed. Hashes that stand for nothing are remembered apart from keys, so that a flood of wrong
ones can't push out the right ones. Calls that wait for the same hash share one query.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from holdfast.model.keys import ApiKey, Org

Found = tuple[ApiKey, Org] | None
TTL_S: Final = 0.5
MOST: Final = 10_000


class KeyCache:
    def __init__(
        self,
        fetch: Callable[[str], Awaitable[Found]],
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._most = most
        self._right: OrderedDict[str, tuple[float, Found]] = OrderedDict()
        self._wrong: OrderedDict[str, tuple[float, Found]] = OrderedDict()
        self._lookups: dict[str, tuple[float, asyncio.Task[Found]]] = {}
        self._age = 0

    async def get(self, key_hash: str) -> Found:
        now = self._clock()
        for known in (self._right, self._wrong):
            answer = known.get(key_hash)
            if answer is not None and now < answer[0]:
                return answer[1]
        return await self._ask(key_hash, now)

    def forget(self) -> None:
        """Something was changed here: nothing that was asked before counts any more."""
        self._age += 1
        self._right.clear()
        self._wrong.clear()
        self._lookups.clear()

    def __len__(self) -> int:
        return len(self._right) + len(self._wrong)

    async def _ask(self, key_hash: str, now: float) -> Found:
        requested_at, task = self._lookups.get(key_hash, (now - TTL_S, None))
        if task is None or now >= requested_at + TTL_S:
            task = asyncio.create_task(self._look_up(key_hash, now, self._age), name="holdfast-key")
            self._lookups[key_hash] = (now, task)
            task.add_done_callback(lambda done: self._answered(key_hash, done))
        # Whoever gives up waiting must not take the answer from the others.
        return await asyncio.shield(task)

    async def _look_up(self, key_hash: str, requested_at: float, age: int) -> Found:
        found = await self._fetch(key_hash)
        if age == self._age:
            self._keep(self._wrong if found is None else self._right, key_hash, (requested_at + TTL_S, found))
        return found

    def _answered(self, key_hash: str, done: asyncio.Task[Found]) -> None:
        if self._lookups.get(key_hash, (0.0, None))[1] is done:
            del self._lookups[key_hash]
        if not done.cancelled():
            done.exception()  # everybody who asked may have gone

    def _keep(self, known: OrderedDict[str, tuple[float, Found]], key_hash: str, answer: tuple[float, Found]) -> None:
        (self._right if known is self._wrong else self._wrong).pop(key_hash, None)
        known[key_hash] = answer
        known.move_to_end(key_hash)
        while len(known) > self._most:
            known.popitem(last=False)
