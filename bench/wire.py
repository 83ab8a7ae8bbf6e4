"""Counts what goes over the wire to PostgreSQL: a proxy between a node and its server.

A round trip is everything a client sends until the server answers. A statement is one that is executed, whether it was
prepared or sent as text; BEGIN, SET LOCAL and COMMIT count, several in one text are one. Figures about time are never
taken through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

_SIMPLE_QUERY = ord("Q")
_EXECUTE = ord("E")
_PARSE = ord("P")
_CHUNK = 1 << 16


@dataclass(slots=True)
class Traffic:
    """What went through since `reset`."""

    round_trips: int = 0
    statements: int = 0
    parsed: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Wire:
    """`async with Wire(url) as wire`: connect to `wire.url`, look at `wire.traffic`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self.traffic = Traffic()

    @property
    def url(self) -> str:
        user = self._parts.username or ""
        place = self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}", query="sslmode=disable")
        return urlunsplit(place)

    def reset(self) -> Traffic:
        """What has been counted, and begin again."""
        found, self.traffic = self.traffic, Traffic()
        return found

    async def __aenter__(self) -> Self:
        self._proxy = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._proxy.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._proxy.close()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        talk = _Talk(self)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(
                _pump(client, to_server, talk.sent),
                _pump(server, to_client, talk.received),
            )


class _Talk:
    """One connection, told apart into messages."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._asking = False
        self._rest = b""
        self._begun = False

    def sent(self, data: bytes) -> None:
        traffic = self._wire.traffic
        traffic.sent_bytes += len(data)
        if not self._asking:
            traffic.round_trips += 1
            self._asking = True
        self._rest += data
        while (message := self._next()) is not None:
            traffic.statements += message in {_SIMPLE_QUERY, _EXECUTE}
            traffic.parsed += message == _PARSE

    def received(self, data: bytes) -> None:
        self._wire.traffic.received_bytes += len(data)
        self._asking = False

    def _next(self) -> int | None:
        """The kind of the next whole message; 0 for the first one, which has none."""
        head = 1 if self._begun else 0
        if len(self._rest) < head + 4:
            return None
        end = head + int.from_bytes(self._rest[head : head + 4], "big")
        if len(self._rest) < end:
            return None
        kind = self._rest[0] if self._begun else 0
        self._rest = self._rest[end:]
        self._begun = True
        return kind


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[bytes], None]) -> None:
    try:
        while data := await reader.read(_CHUNK):
            count(data)
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
