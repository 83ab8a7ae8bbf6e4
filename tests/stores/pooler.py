"""A transaction pooler, as small as it can be: every transaction of a client runs on another connection to the server.

It speaks PostgreSQL's protocol as far as it has to: who logs in, where a message ends, and when a transaction is over.
Session state that a client leaves behind is found by the next one, or missed by the one who left it, as behind the real
ones in transaction mode.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

_SSL_REQUEST = 80877103
_GSS_REQUEST = 80877104
_CANCEL = 80877102
Asked = asyncio.Future[bytes]
"""What the client says next: never given up half-way, since half a message is none."""


class Backend:
    """A connection to the server that is logged in."""

    def __init__(
        self, port: int | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, greeting: bytes
    ) -> None:
        self.port = port
        self.reader = reader
        self.writer = writer
        self.greeting = greeting


class Pooler:
    """`transactions` says for each client, in the order they came, which server connections it was given."""

    def __init__(self, url: str, size: int) -> None:
        self._url = urlsplit(url)
        self._size = size
        self._made = 0
        self._free: deque[tuple[int, Backend]] = deque()
        self._freed = asyncio.Condition()
        self._clients: set[asyncio.Task[None]] = set()
        self.transactions: list[list[int]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """The URL to use instead of the server's."""
        listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        place = f"{self._url.username}@127.0.0.1:{port}"
        try:
            yield urlunsplit(self._url._replace(netloc=place, query="notify=off"))
        finally:
            listening.close()
            for client in self._clients:
                client.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)
            for _, backend in self._free:
                backend.writer.close()

    def go_over(self, url: str) -> None:
        """To another server, as after a failover: clients that are between two transactions do not notice."""
        self._url = urlsplit(url)
        left, self._free = self._free, deque()
        for _, backend in left:
            self._drop(backend)

    def _drop(self, backend: Backend) -> None:
        backend.writer.close()
        self._made -= 1

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._serve(reader, writer)
        finally:
            self._clients.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await _logged_in(reader, writer):
            return
        number, backend = await self._take()
        writer.write(_with_made_up_key(backend.greeting))
        await self._give_back(number, backend)
        given: list[int] = []
        self.transactions.append(given)
        asked: Asked = asyncio.ensure_future(_message(reader))
        try:
            while (await asked)[:1] != b"X":
                number, backend = await self._take()
                given.append(number)
                try:
                    asked = await self._transaction(asked, reader, writer, backend)
                except (asyncio.IncompleteReadError, ConnectionError):
                    self._drop(backend)
                    raise
                await self._give_back(number, backend)
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    async def _transaction(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, backend: Backend
    ) -> Asked:
        """Pass on what both say until the server is ready for anything. What the client will say next."""
        told = asyncio.ensure_future(_message(backend.reader))
        try:
            while True:
                if asked.done():
                    message = asked.result()
                    if message[:1] == b"X":
                        raise ConnectionError("the client has left its transaction")
                    backend.writer.write(message)
                    asked = asyncio.ensure_future(_message(reader))
                await asyncio.wait([asked, told], return_when=asyncio.FIRST_COMPLETED)
                if told.done():
                    answer = told.result()
                    writer.write(answer)
                    if answer == b"Z\0\0\0\5I":
                        return asked
                    told = asyncio.ensure_future(_message(backend.reader))
        finally:
            told.cancel()
            await asyncio.gather(told, return_exceptions=True)

    async def _take(self) -> tuple[int, Backend]:
        async with self._freed:
            while not self._free:
                if self._made < self._size:
                    self._made += 1
                    return self._made, await self._connected()
                await self._freed.wait()
            return self._free.popleft()

    async def _give_back(self, number: int, backend: Backend) -> None:
        async with self._freed:
            if backend.port == self._url.port:
                self._free.append((number, backend))
            else:
                self._drop(backend)
            self._freed.notify()

    async def _connected(self) -> Backend:
        assert self._url.hostname is not None
        port = self._url.port
        reader, writer = await asyncio.open_connection(self._url.hostname, port)
        words = ["user", self._url.username or "", "database", self._url.path[1:], ""]
        body = struct.pack("!i", 196608) + b"".join(word.encode() + b"\0" for word in words)
        writer.write(struct.pack("!i", len(body) + 4) + body)
        greeting = b""
        while greeting[-6:] != b"Z\0\0\0\5I":
            greeting += await _message(reader)
        return Backend(port, reader, writer, greeting)


def _with_made_up_key(greeting: bytes) -> bytes:
    """The process id and the key to cancel with are the pooler's own, as those of real ones are."""
    begin = greeting.index(b"K\0\0\0\x0c")
    return greeting[: begin + 5] + struct.pack("!ii", 99_999_999, 1) + greeting[begin + 13 :]


async def _logged_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether somebody wants to talk, in the clear: anybody may."""
    while True:
        (length,) = struct.unpack("!i", await reader.readexactly(4))
        (code,) = struct.unpack("!i", await reader.readexactly(4))
        await reader.readexactly(length - 8)
        if code not in {_SSL_REQUEST, _GSS_REQUEST}:
            return bool(code != _CANCEL)
        writer.write(b"N")


async def _message(reader: asyncio.StreamReader) -> bytes:
    execution_row = await reader.readexactly(5)
    (length,) = struct.unpack("!i", execution_row[1:])
    return execution_row + await reader.readexactly(length - 4)
