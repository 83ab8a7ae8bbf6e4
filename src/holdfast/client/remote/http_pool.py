"""HTTP/1.1 as a client of a Holdfast server needs it, on asyncio's streams: kept connections, time-outs, TLS.

Written here because the base install must stay light, and the common libraries are either large or no longer looked
after. It trusts nobody: sizes are limited, redirects are not followed, certificates are checked.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from holdfast.errors import EngineStopped, InvalidServer, ServerUnreachable, UnexpectedAnswer

HEAD_BYTES: Final = 64 * 1024
ANSWER_BYTES: Final = 256 * 1024 * 1024
IDLE_S: Final = 55.0
"""Less than a server keeps them, so that a connection is rarely closed just when it is used again."""
_READS: Final = "a server's address reads http://host:port or https://host:port"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    data: bytes


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


class _Connection:
    __slots__ = ("idle_since", "reader", "writer")

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        closed = self.writer.is_closing() or self.reader.at_eof()
        return not closed and time.monotonic() - self.idle_since < IDLE_S

    def close(self) -> None:
        self.writer.close()


class ConnectionPool:
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
        await asyncio.gather(*(one.writer.wait_closed() for one in ended), return_exceptions=True)

    async def exchange(
        self, method: str, target: str, headers: dict[str, str], body: bytes | None, timeout_s: float | None
    ) -> Answer:
        """One request and its answer. Raises UnexpectedAnswer, or ServerUnreachable; with `sent` False in its
        details, the server has got nothing of it."""
        head = self._head(method, target, headers, body)
        async with self._room:
            connection = await self._take()
            try:
                async with asyncio.timeout(timeout_s):
                    connection.writer.write(head + (body or b""))
                    await connection.writer.drain()
                    answer, keep = await _read(connection.reader, method)
            except TimeoutError:
                connection.close()
                raise ServerUnreachable(f"{self._address.shown} has not answered within {timeout_s} s") from None
            except (OSError, asyncio.IncompleteReadError) as error:
                connection.close()
                raise ServerUnreachable(f"the connection to {self._address.shown} was lost: {error}") from error
            except BaseException:
                connection.close()  # half an answer may be on its way
                raise
        if keep and not self._closed:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()
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
                connection.writer.write(self._head("GET", target, headers, None))
                await connection.writer.drain()
                status, found, _ = await _read_head(connection.reader)
                if status == 200 and found.get("transfer-encoding", "").lower() == "chunked":
                    return self._pieces(connection, silence_s)
                answer, _ = await _read_body(connection.reader, status, found)
        except BaseException as error:
            connection.close()
            raise self._lost(error, timeout_s) from error
        connection.close()
        return answer

    async def _pieces(self, connection: _Connection, silence_s: float) -> AsyncIterator[bytes]:
        self._streaming.add(connection)
        try:
            while True:
                async with asyncio.timeout(silence_s):
                    piece = await _read_chunk(connection.reader)
                if not piece:
                    return
                yield piece
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            raise self._lost(error, silence_s) from error
        finally:
            self._streaming.discard(connection)
            connection.close()

    def _lost(self, error: BaseException, timeout_s: float | None) -> BaseException:
        """What a caller is told of it."""
        if isinstance(error, TimeoutError):
            return ServerUnreachable(f"{self._address.shown} has not answered within {timeout_s} s")
        if isinstance(error, OSError | asyncio.IncompleteReadError):
            return ServerUnreachable(f"the connection to {self._address.shown} was lost: {error}")
        return error

    async def _take(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return await self._connect()

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                reader, writer = await asyncio.open_connection(
                    self._address.host, self._address.port, ssl=self._tls, limit=HEAD_BYTES
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
        return _Connection(reader, writer)


async def _read(reader: asyncio.StreamReader, method: str) -> tuple[Answer, bool]:
    status, headers, keep = await _read_head(reader)
    if method == "HEAD" or status in {204, 304} or status < 200:
        return Answer(status, headers, b""), keep
    answer, ended = await _read_body(reader, status, headers)
    return answer, keep and ended


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bool]:
    """Status, headers, and whether the connection can be used again."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise UnexpectedAnswer("the answer's headers are too large") from None
    status_line, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = status_line.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise UnexpectedAnswer(f"this is not HTTP: {status_line!r:.60}")
    status = int(rest[:3])
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return status, headers, version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"


async def _read_body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> tuple[Answer, bool]:
    """The answer, and whether its end was marked."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Answer(status, headers, await _read_chunks(reader)), True
    length = headers.get("content-length", "")
    if not length.isdigit():
        return Answer(status, headers, await _read_rest(reader)), False
    if int(length) > ANSWER_BYTES:
        raise UnexpectedAnswer(f"the answer has {length} bytes, more than {ANSWER_BYTES}")
    return Answer(status, headers, await reader.readexactly(int(length))), True


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts, size = list[bytes](), 0
    while part := await _read_chunk(reader, ANSWER_BYTES - size):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


async def _read_chunk(reader: asyncio.StreamReader, most: int = ANSWER_BYTES) -> bytes:
    """One piece of an answer; the last one is empty."""
    try:
        length = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
    except (ValueError, asyncio.LimitOverrunError):
        raise UnexpectedAnswer("the answer is cut up in a way this client does not understand") from None
    if not 0 <= length <= most:
        raise UnexpectedAnswer(f"the answer has more than {ANSWER_BYTES} bytes")
    return (await reader.readexactly(length + 2))[:-2]


async def _read_rest(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(ANSWER_BYTES + 1)
    parts = [data]
    while data:
        data = await reader.read(ANSWER_BYTES + 1)
        parts.append(data)
        if sum(map(len, parts)) > ANSWER_BYTES:
            raise UnexpectedAnswer(f"the answer has more than {ANSWER_BYTES} bytes")
    return b"".join(parts)
