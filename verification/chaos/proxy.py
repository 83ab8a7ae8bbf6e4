"""A TCP proxy in front of a PostgreSQL server that knows one thing of its language: a COMMIT when it sees one.

Whoever has it asked decides at each COMMIT what is to happen to it: passed on, lost on its way, done but never
answered. The proxy runs on the loop of the test and counts what it has really done, not what it was told to do.
"""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, Self

_CHUNK: Final = 1 << 16
_STARTUP: Final = 196_608  # protocol 3.0; the other codes ask for encryption or cancel something
_CODES: Final = range(80_877_102, 80_877_105)


class Cut(StrEnum):
    """What can happen to a COMMIT. Held: the connection stays, and nothing passes on it any more, either way."""

    BEFORE = "cut before COMMIT"
    DURING = "cut while COMMIT runs"
    AFTER = "cut after COMMIT"
    HELD_BEFORE = "held before COMMIT"
    HELD_AFTER = "held after COMMIT"


Choose = Callable[[str], Cut | None]


def pass_all(_: str) -> None:
    return None


class Proxy:
    """`choose` is given the application name of the connection that is about to commit, and says what happens."""

    def __init__(self, port: int, choose: Choose = pass_all) -> None:
        self.server_port = port
        self.choose: Choose = choose
        self.before_cut: Callable[[], Awaitable[None]] | None = None
        """What is to happen between a COMMIT that is cut while it runs and the cut."""
        self.struck: Callable[[Cut, str], None] | None = None
        """Told of every cut when it has happened, with the application name."""
        self.counts: Counter[str] = Counter()
        self.commits = 0
        self.delayed = 0
        self._links: set[_Link] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.choose = pass_all
        self._server.close()
        self.heal()
        self.cut_all()
        await asyncio.gather(*(link.task for link in list(self._links)), return_exceptions=True)

    def url_of(self, url: str, name: str = "") -> str:
        """The same database, through here."""
        made = url.replace(f":{self.server_port}/", f":{self.port}/")
        return f"{made}?application_name={name}" if name else made

    def cut_all(self, name: str | None = None) -> int:
        """All connections, or those of one application; how many those were."""
        found = [link for link in self._links if name is None or link.name == name]
        for link in found:
            link.abort()
        return len(found)

    def block(self) -> None:
        """Nothing passes any more until `heal`; what is sent meanwhile arrives then."""
        self.delayed = 0
        self._flowing.clear()

    def heal(self) -> int:
        """How many had something to send, or wanted to connect, and had to wait."""
        self._flowing.set()
        return self.delayed

    async def until_open(self) -> None:
        if not self._flowing.is_set():
            self.delayed += 1
            await self._flowing.wait()

    @property
    def held(self) -> int:
        """Connections that are there, and on which nothing passes any more."""
        return sum(link.is_held for link in self._links)

    def at_commit(self, name: str) -> Cut | None:
        self.commits += 1
        return self.choose(name)

    def strike(self, cut: Cut, name: str) -> None:
        self.counts[cut] += 1
        if self.struck is not None:
            self.struck(cut, name)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, reader, writer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)


class _Link:
    """One connection: the client's half and the server's."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = (reader, writer)
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._begun = False
        self._cut: Cut | None = None
        self._over = asyncio.Event()
        self.name = ""
        self.is_held = False
        task = asyncio.current_task()
        assert task is not None, "a connection has a task of its own"
        self.task = task

    def abort(self) -> None:
        self._over.set()
        for half in (self._client, self._server):
            if half is not None:
                half[1].transport.abort()

    async def run(self) -> None:
        try:
            await self._proxy.until_open()
            self._server = await asyncio.open_connection("127.0.0.1", self._proxy.server_port)
            pumps = [asyncio.ensure_future(self._up()), asyncio.ensure_future(self._down())]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:
            pass  # the server is away: the client is told by the end of its connection
        finally:
            self.abort()

    async def _up(self) -> None:
        assert self._server is not None
        reader, writer = self._client[0], self._server[1]
        waiting = bytearray()
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._proxy.until_open()
                waiting += chunk
                if await self._pass_on(waiting, writer):
                    return
                await writer.drain()

    async def _pass_on(self, waiting: bytearray, writer: asyncio.StreamWriter) -> bool:
        """Send the messages that are complete; whether the connection has had its day."""
        end = 0
        while (length := self._length(waiting, end)) is not None:
            message = bytes(waiting[end : end + length])
            end += length
            if message[:1] == b"Q" and message[5:].rstrip(b"\0 ;").upper() == b"COMMIT":
                writer.write(waiting[: end - length])
                del waiting[:end]
                end = 0
                if await self._commit(message, writer):
                    return True
        writer.write(waiting[:end])
        del waiting[:end]
        return False

    def _length(self, waiting: bytearray, at: int) -> int | None:
        """Of the message that begins there; None if it is not complete."""
        skipped = 1 if self._begun else 0
        if len(waiting) < at + skipped + 4:
            return None
        length: int = struct.unpack_from("!I", waiting, at + skipped)[0] + skipped
        if len(waiting) < at + length:
            return None
        if not self._begun and struct.unpack_from("!I", waiting, at + 4)[0] not in _CODES:
            self._begun = True
            words = bytes(waiting[at + 8 : at + length]).split(b"\0")
            if b"application_name" in words:
                self.name = words[words.index(b"application_name") + 1].decode()
        return length

    async def _commit(self, message: bytes, writer: asyncio.StreamWriter) -> bool:
        self._cut = self._proxy.at_commit(self.name)
        if self._cut is Cut.BEFORE:
            self._proxy.strike(self._cut, self.name)
            return True
        if self._cut is Cut.HELD_BEFORE:
            self._hold(self._cut)
            await self._over.wait()
            return True
        writer.write(message)
        if self._cut is Cut.DURING:
            await writer.drain()
            if self._proxy.before_cut is not None:
                await self._proxy.before_cut()
            writer.close()  # what was written still arrives
            self._client[1].transport.abort()
            self._proxy.strike(self._cut, self.name)
            return True
        return False

    def _hold(self, cut: Cut) -> None:
        self.is_held = True
        self._proxy.strike(cut, self.name)

    async def _down(self) -> None:
        assert self._server is not None
        reader, writer = self._server[0], self._client[1]
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._proxy.until_open()
                if self._cut is Cut.AFTER:
                    self._proxy.strike(self._cut, self.name)
                    return  # this is the answer to the COMMIT
                if self._cut is Cut.HELD_AFTER and not self.is_held:
                    self._hold(self._cut)
                if self._cut is None:
                    writer.write(chunk)
                    await writer.drain()
