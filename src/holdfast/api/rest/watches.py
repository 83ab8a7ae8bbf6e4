"""Lists that are followed: one reader for all who follow the same one.

Nothing is read while nothing changes, and never more often than every `PAUSE_S`. A follower that does not read keeps
only the newest state of each execution, and not more of them than the list has room for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

import msgspec

from holdfast.contract.execution_reads import ExecutionInfo, ListExecutions
from holdfast.contract.feeds import Feeds
from holdfast.contract.operation import Api
from holdfast.errors import HoldfastError

log = logging.getLogger("holdfast.api")
PAUSE_S: Final = 0.1
_ENCODE: Final = msgspec.json.Encoder().encode

Shown = tuple[int, str, datetime]
"""What tells whether an execution looks as it did: length of its history, status, time of its last change."""


def one_line(data: bytes) -> bytes:
    """JSON without line breaks, which would end a frame's `data`. In JSON they can only be space between parts."""
    return data.replace(b"\n", b" ").replace(b"\r", b" ")


class Follower:
    """Frames that have not been sent yet, by execution."""

    __slots__ = ("_most", "_news", "frames")

    def __init__(self, most: int) -> None:
        self._most = most
        self._news = asyncio.Event()
        self.frames: OrderedDict[str, bytes] = OrderedDict()

    def put(self, execution_id: str, frame: bytes) -> None:
        self.frames.pop(execution_id, None)
        self.frames[execution_id] = frame
        while len(self.frames) > self._most:
            self.frames.popitem(last=False)
        self._news.set()

    async def take(self) -> bytes:
        await self._news.wait()
        self._news.clear()
        taken = b"".join(self.frames.values())
        self.frames.clear()
        return taken


class Watch:
    """One list and those who follow it."""

    def __init__(self, api: Api, feeds: Feeds, request: ListExecutions) -> None:
        self._api = api
        self._feeds = feeds
        self._request = request
        self._shown: dict[str, Shown] = {}
        self._frames: dict[str, bytes] = {}
        self.followers: set[Follower] = set()
        self.task: asyncio.Task[None] | None = None
        self.failed: HoldfastError | None = None

    def join(self) -> Follower:
        follower = Follower(self._request.limit * 2)
        for execution_id in reversed(list(self._frames)):
            follower.put(execution_id, self._frames[execution_id])
        self.followers.add(follower)
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._run(), name="holdfast-list-watch")
        return follower

    async def _run(self) -> None:
        tick = 0
        while True:
            try:
                tick = await self._feeds.changed(self._request.org, tick)
                page = await self._api.call(self._request)
            except HoldfastError as error:
                log.warning("a list can't be followed just now: %s", error)
                await asyncio.sleep(1.0)
                continue
            self._tell(page.items)
            await asyncio.sleep(PAUSE_S)

    def _tell(self, items: tuple[ExecutionInfo, ...]) -> None:
        shown = {item.workflow_execution_id: (item.history_length, str(item.status), item.updated_at) for item in items}
        for gone in self._shown.keys() - shown.keys():
            self._frames.pop(gone, None)
            self._put(gone, b'event: removed\ndata: {"workflow_execution_id":"%b"}\n\n' % gone.encode())
        for item in reversed(items):
            key = item.workflow_execution_id
            if self._shown.get(key) != shown[key]:
                frame = b"event: execution\ndata: %b\n\n" % _ENCODE(item)
                self._frames[key] = frame
                self._put(key, frame)
        self._frames = {key: self._frames[key] for key in shown}
        self._shown = shown

    def _put(self, execution_id: str, frame: bytes) -> None:
        for follower in self.followers:
            follower.put(execution_id, frame)


class ListWatches:
    """All lists that are followed through this door."""

    def __init__(self, api: Api, feeds: Feeds) -> None:
        self._api = api
        self._feeds = feeds
        self._watches: dict[bytes, Watch] = {}

    async def follow(self, request: ListExecutions) -> AsyncIterator[bytes]:
        key = _ENCODE(request)
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = Watch(self._api, self._feeds, request)
        follower = watch.join()
        try:
            while True:
                yield await follower.take()
        finally:
            watch.followers.discard(follower)
            if not watch.followers:
                self._watches.pop(key, None)
                if watch.task is not None:
                    watch.task.cancel()
