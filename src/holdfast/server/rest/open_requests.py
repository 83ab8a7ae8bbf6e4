"""Callers that stay: long polls and streams.

Each ends when its caller goes away, when its key ends (all keys that are in use are asked about once a second, however
many streams they have), and when the server stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from holdfast.contract.keys import Principal
from holdfast.errors import EngineStopped, HoldfastError, TooManyRequests, Unauthenticated
from holdfast.server.auth import Authenticator

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

CHECK_S: Final = 1.0
HEARTBEAT: Final = b": still here\n\n"
_NO_MORE: Final = object()


class OpenRequests:
    def __init__(self, authenticator: Authenticator, most: int) -> None:
        self._authenticator = authenticator
        self._most = most
        self._held: dict[Principal | None, set[asyncio.Future[None]]] = {}
        self._count = 0
        self._checking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def count(self) -> int:
        return self._count

    async def hold(self, work: Coroutine[Any, Any, T], principal: Principal | None, receive: Receive) -> T:
        """The outcome of something that may take a while."""
        try:
            ended = self._enter(principal)
        except HoldfastError:
            work.close()
            raise
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait(_futures(task, gone, ended), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if ended.done():
                ended.result()
            raise ConnectionAbortedError("the caller has gone away")
        finally:
            await _end(task, gone)
            self._leave(principal, ended)

    async def frames(
        self, frames: AsyncIterator[bytes], principal: Principal | None, receive: Receive, heartbeat_s: float
    ) -> AsyncGenerator[bytes, None]:
        """The frames of a stream, and a sign of life when there are none. When the server stops, it just ends: the
        reader comes back to another, or later."""
        ended = self._enter(principal)
        gone = asyncio.ensure_future(_until_gone(receive))
        following: asyncio.Future[bytes] | None = None
        try:
            while True:
                if following is None:
                    following = asyncio.ensure_future(_following(frames))
                await asyncio.wait(
                    _futures(following, gone, ended), timeout=heartbeat_s, return_when=asyncio.FIRST_COMPLETED
                )
                if ended.done():
                    with suppress(EngineStopped):
                        ended.result()
                    return
                if gone.done():
                    raise ConnectionAbortedError("the caller has gone away")
                if not following.done():
                    yield HEARTBEAT
                    continue
                frame = following.result()
                following = None
                if frame is _NO_MORE:
                    return
                yield frame
        finally:
            await _end(gone, *([] if following is None else [following]))
            self._leave(principal, ended)
            close = getattr(frames, "aclose", None)
            if close is not None:
                await close()

    def _enter(self, principal: Principal | None) -> asyncio.Future[None]:
        if self._closed:
            raise EngineStopped("the server is being shut down")
        if self._count >= self._most:
            raise TooManyRequests(f"there are {self._most} streams and long polls already: try again later")
        self._count += 1
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        self._held.setdefault(principal, set()).add(ended)
        if self._checking is None:
            self._checking = loop.create_task(self._check(), name="holdfast-guests")
        return ended

    def _leave(self, principal: Principal | None, ended: asyncio.Future[None]) -> None:
        self._count -= 1
        staying = self._held.get(principal)
        if staying is not None:
            staying.discard(ended)
            if not staying:
                del self._held[principal]
        if ended.done() and not ended.cancelled():
            ended.exception()
        if not self._held and self._checking is not None:
            self._checking.cancel()
            self._checking = None

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            for principal in list(self._held):
                if principal is None:
                    continue
                try:
                    await self._authenticator.check_again(principal)
                except Unauthenticated as error:
                    self._end_expired(principal, error)
                except HoldfastError:
                    continue  # the database is away: the key may well be good

    def _end_expired(self, principal: Principal | None, error: HoldfastError) -> None:
        for ended in list(self._held.get(principal, ())):
            if not ended.done():
                ended.set_exception(error)

    async def close(self) -> None:
        self._closed = True
        for principal in list(self._held):
            self._end_expired(principal, EngineStopped("the server is being shut down"))


def _futures(*futures: asyncio.Future[Any]) -> set[asyncio.Future[Any]]:
    return set(futures)


async def _following(frames: AsyncIterator[bytes]) -> Any:
    """A StopAsyncIteration can't travel in a future."""
    return await anext(frames, _NO_MORE)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
