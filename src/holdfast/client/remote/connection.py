"""HTTP/1.1 as a client of a Holdfast server needs it, on asyncio's transports: kept connections, time-outs, TLS.

Connections are kept here because the libraries that keep them are large or no longer maintained. No server is trusted:
sizes are limited, redirects are not followed, certificates are checked. A connection is used again only after an answer
that ended as announced, with nothing behind it.
"""

from __future__ import annotations

import asyncio
import select
import ssl
import time
from collections.abc import AsyncIterator
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

from holdfast.client.remote.answers import Answer, AnswerReader, Body, Head, plain_answer
from holdfast.errors import EngineStopped, InvalidServer, ServerUnreachable

UNREAD_BYTES: Final = 256 * 1024
"""A server that sends faster than its answer is read is stopped here."""
LARGE_BYTES: Final = 64 * 1024
"""A request of more bytes may have been refused before the server had read it, and the rest may still be on its way."""
IDLE_S: Final = 55.0
"""Less than a server keeps them, so that a connection is rarely closed just when it is used again."""
_READS: Final = "a server's address reads http://host:port or https://host:port"
_TLS_GOODBYE_S: Final = 2.0
_STREAM: Final = b"text/event-stream"


class Address(NamedTuple):
    host: str
    port: int
    secure: bool
    prefix: str

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_url(url: str) -> Address:
    """Raises InvalidServer."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # The reason is not shown: of a key in front of the host, it may show a part.
        raise InvalidServer(_READS, field="url") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise InvalidServer(_READS, field="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidServer("give the key as api_key=, not in the address", field="url")
    secure = parts.scheme == "https"
    return Address(parts.hostname, port or (443 if secure else 80), secure, parts.path.rstrip("/"))


class _Connection(asyncio.Protocol):
    """One request and its answer at a time. Bytes that come while no call waits for an answer close it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.idle_since = 0.0
        self.gone: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._transport: asyncio.Transport
        self._reader: AnswerReader | None = None
        self._asked = False
        self._arrived = b""
        self._ended = False
        self._lost: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._poll = select.poll() if hasattr(select, "poll") else None

    # --- asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._poll is not None:
            self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self._transport.abort()
            return
        self._arrived = self._arrived + data if self._arrived else data
        if len(self._arrived) > UNREAD_BYTES:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc or ConnectionAbortedError("it was closed")
        self._wake()
        if not self.gone.done():
            self.gone.set_result(None)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- calls ---

    @property
    def usable(self) -> bool:
        """Whether the next request may be sent on it."""
        if self._transport.is_closing() or time.monotonic() - self.idle_since > IDLE_S:
            return False
        # Bytes or an end that the event loop has not read yet would be taken for the next answer.
        return self._poll is None or not self._poll.poll(0)

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        """Close it without sending what is still to be sent: the server may never read it."""
        self._transport.abort()

    async def answer(self, method: str, request: bytes) -> Answer:
        """Raises OSError and UnexpectedAnswer."""
        self._send(request)
        first = await self._receive()
        if method != "HEAD" and (answer := plain_answer(first)) is not None:
            return answer
        head = await self._head(AnswerReader(method), first)
        return Answer(head.status, await self.body())

    async def open_stream(self, request: bytes) -> Head:
        """What comes before the body of an answer. Raises as `answer`."""
        self._send(request)
        return await self._head(AnswerReader("GET"), await self._receive())

    async def body(self) -> bytes:
        body = Body()
        while part := await self.piece():
            body.add(part)
        return body.whole()

    async def piece(self) -> bytes:
        """What has come of the answer's body since the last one; at its end, nothing."""
        assert self._reader is not None
        while (part := self._reader.piece()) is None:
            self._reader.feed(await self._receive())
        return part

    def ready_again(self) -> bool:
        """Whether another request may follow this one and its answer."""
        clean = (self._reader is None or self._reader.clean) and not self._arrived
        if not clean or self._transport.is_closing():
            return False
        self._reader = None
        self._asked = False
        self.idle_since = time.monotonic()
        return True

    def _send(self, request: bytes) -> None:
        self._asked = True
        # It is not waited until all is sent: a server that refuses a large body answers before it has read it.
        self._transport.write(request)

    async def _head(self, reader: AnswerReader, first: bytes) -> Head:
        self._reader = reader
        reader.feed(first)
        while (head := reader.head()) is None:
            reader.feed(await self._receive())
        return head

    async def _receive(self) -> bytes:
        """What has come; nothing where the server has closed its side."""
        if not self._arrived and not self._ended:
            await self._more()
        data, self._arrived = self._arrived, b""
        if len(data) > UNREAD_BYTES:
            self._transport.resume_reading()
        return data

    async def _more(self) -> None:
        if self._lost is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._lost is not None and not self._arrived and not self._ended:
            raise self._lost


class Connections:
    """Connections to one server. The one used last is used first, so that the others may end."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, connect_timeout_s: float, most: int) -> None:
        self._address = address
        self._tls = (tls or ssl.create_default_context()) if address.secure else None
        self._connect_timeout_s = connect_timeout_s
        self._idle: list[_Connection] = []
        self._streaming: set[_Connection] = set()
        self._room = asyncio.Semaphore(most)
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        ended, self._idle = [*self._idle, *self._streaming], []
        for connection in ended:
            connection.close()
        await asyncio.gather(*(one.gone for one in ended))

    async def exchange(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, timeout_s: float | None
    ) -> Answer:
        """One request and its answer. Raises UnexpectedAnswer, or ServerUnreachable; with `sent` False in its
        details, the server has got nothing of it."""
        request = self._head(method, target, headers, body) + (body or b"")
        async with self._room:
            connection = await self._take()
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await connection.answer(method, request)
            except OSError as error:
                connection.abort()
                raise self._unreachable(error, timeout_s) from error
            except BaseException:
                connection.abort()  # half an answer may be on its way
                raise
        unread = len(request) > LARGE_BYTES and answer.status >= 400
        if not unread and not self._closed and connection.ready_again():
            self._idle.append(connection)
        else:
            connection.abort()
        return answer

    def _head(self, method: str, target: str, headers: dict[str, str], body: bytes | None) -> bytes:
        lines = [f"{method} {self._address.prefix}{target} HTTP/1.1", f"host: {self._address.shown}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None or method != "GET":
            lines.append(f"content-length: {len(body or b'')}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def stream(
        self, target: str, headers: dict[str, str], timeout_s: float, silence_s: float
    ) -> AsyncIterator[bytes] | Answer:
        """An answer that comes in pieces, on a connection of its own; or a whole one, if it is not a stream. Raises as
        `exchange`, also in the middle, and when nothing comes for `silence_s`."""
        if self._closed:
            raise EngineStopped("this client is closed")
        connection = await self._connect()
        try:
            async with asyncio.timeout(timeout_s):
                head = await connection.open_stream(self._head("GET", target, headers, None))
                if head.status == 200 and head.headers.get(b"content-type", b"").startswith(_STREAM):
                    return self._pieces(connection, silence_s)
                answer = Answer(head.status, await connection.body())
        except OSError as error:
            connection.abort()
            raise self._unreachable(error, timeout_s) from error
        except BaseException:
            connection.abort()
            raise
        connection.abort()
        return answer

    async def _pieces(self, connection: _Connection, silence_s: float) -> AsyncIterator[bytes]:
        self._streaming.add(connection)
        try:
            while True:
                async with asyncio.timeout(silence_s):
                    piece = await connection.piece()
                if not piece:
                    return
                yield piece
        except OSError as error:
            raise self._unreachable(error, silence_s) from error
        finally:
            self._streaming.discard(connection)
            connection.abort()

    def _unreachable(self, error: OSError, timeout_s: float | None) -> ServerUnreachable:
        if isinstance(error, TimeoutError):
            return ServerUnreachable(f"{self._address.shown} has not answered within {timeout_s} s")
        return ServerUnreachable(f"the connection to {self._address.shown} was lost: {error}")

    async def _take(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.abort()
        return await self._connect()

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop),
                    self._address.host,
                    self._address.port,
                    ssl=self._tls,
                    ssl_shutdown_timeout=_TLS_GOODBYE_S if self._tls else None,
                )
        except ssl.SSLError as error:
            raise InvalidServer(
                f"{self._address.shown} can't be trusted, or does not speak TLS: {error}", field="url"
            ) from error
        except TimeoutError:
            raise ServerUnreachable(
                f"{self._address.shown} can't be reached within {self._connect_timeout_s} s", sent=False
            ) from None
        except OSError as error:
            raise ServerUnreachable(
                f"{self._address.shown} can't be reached: {error.strerror or error}", sent=False
            ) from error
        return connection
