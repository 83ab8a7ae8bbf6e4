"""Lists that are followed: one reader for all who follow the same one.

Nothing is read while nothing changes, and never more often than every `PAUSE_S`. A follower that does not read keeps
only the newest state of each execution, and not more of them than the list has room for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from holdfast.contract.executions import Executions, ListExecutions
from holdfast.contract.feeds import Feeds
from holdfast.errors import HoldfastError
from holdfast.model.executions import Execution
from holdfast.transport.rest.views import execution_view

log = logging.getLogger("holdfast.server")
PAUSE_S: Final = 0.1
_ENCODE: Final = msgspec.json.Encoder().encode

Shown = tuple[int, str, int]
"""What tells whether an execution looks as it did: length of its history, status, time of its last change."""


def one_line(data: bytes) -> bytes:
    """JSON without line breaks, which would end a frame's `data`. In JSON they can only be space between parts."""
    return data.replace(b"\n", b" ").replace(b"\r", b" ")


class Follower:
    """Frames that have not been sent yet, by execution."""

    __slots__ = ("_most", "_pending", "frames")

    def __init__(self, most: int) -> None:
        self._most = most
        self._pending = asyncio.Event()
        self.frames: OrderedDict[str, bytes] = OrderedDict()

    def put(self, execution_id: str, frame: bytes) -> None:
        self.frames.pop(execution_id, None)
        self.frames[execution_id] = frame
        while len(self.frames) > self._most:
            self.frames.popitem(last=False)
        self._pending.set()

    async def take(self) -> bytes:
        await self._pending.wait()
        self._pending.clear()
        taken = b"".join(self.frames.values())
        self.frames.clear()
        return taken


class ListStream:
    """One list and those who follow it."""

    def __init__(self, executions: Executions, feeds: Feeds, request: ListExecutions) -> None:
        self._executions = executions
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
                page = await self._executions.list(self._request)
            except HoldfastError as error:
                log.warning("a list can't be followed just now: %s", error)
                await asyncio.sleep(1.0)
                continue
            self._publish(page.items)
            await asyncio.sleep(PAUSE_S)

    def _publish(self, items: tuple[Execution, ...]) -> None:
        shown = {item.id: (item.last_seq, str(item.status), item.updated_at) for item in items}
        for gone in self._shown.keys() - shown.keys():
            self._frames.pop(gone, None)
            self._put(gone, b'event: removed\ndata: {"workflow_execution_id":"%b"}\n\n' % gone.encode())
        for item in reversed(items):
            if self._shown.get(item.id) != shown[item.id]:
                frame = b"event: execution\ndata: %b\n\n" % _ENCODE(execution_view(item))
                self._frames[item.id] = frame
                self._put(item.id, frame)
        self._frames = {item.id: self._frames[item.id] for item in items}
        self._shown = shown

    def _put(self, execution_id: str, frame: bytes) -> None:
        for follower in self.followers:
            follower.put(execution_id, frame)


class ListStreams:
    """All lists that are followed through this door."""

    def __init__(self, executions: Executions, feeds: Feeds) -> None:
        self._executions = executions
        self._feeds = feeds
        self._streams: dict[ListExecutions, ListStream] = {}

    async def follow(self, request: ListExecutions) -> AsyncIterator[bytes]:
        stream = self._streams.get(request)
        if stream is None:
            stream = self._streams[request] = ListStream(self._executions, self._feeds, request)
        follower = stream.join()
        try:
            while True:
                yield await follower.take()
        finally:
            stream.followers.discard(follower)
            if not stream.followers:
                self._streams.pop(request, None)
                if stream.task is not None:
                    stream.task.cancel()
