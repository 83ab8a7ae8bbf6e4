"""uvicorn's HTTP protocol with what it lacks: limits on the size and on the slowness of headers, and answers that are
sent in one go."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.config import ServerConfig

REQUEST_LINE = 8 * 1024
ABORT = "holdfast.abort"
"""Among the extensions of a request: cuts its connection."""


class OneWrite:
    """A transport that holds the head of an answer until its body comes: one system call instead of two."""

    __slots__ = ("_cycle", "_head", "_transport")

    def __init__(self, transport: Any, cycle: Any) -> None:
        self._transport = transport
        self._cycle = cycle
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if not self._cycle.response_started:
            self._transport.write(data)  # 100 Continue
        elif self._head is None:
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """There is no body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class GuardedHttp(HttpToolsProtocol):
    """Bytes are counted and time runs from the first byte of a request until its headers are complete. The door itself
    counts again, more exactly: this keeps what never ends out of memory."""

    _head_bytes = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    @classmethod
    def configure(cls, served: uvicorn.Config, config: ServerConfig) -> None:
        served.holdfast = config  # type: ignore[attr-defined]

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._timer is None:
                self._set_timer()
        super().data_received(data)
        if self._in_head and self._head_bytes > self._config().header_bytes * 2 + REQUEST_LINE:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()
        extensions: Any = {ABORT: self.transport.abort}
        self.scope["extensions"] = extensions

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._drop_timer()
        super().on_headers_complete()
        cycle: Any = self.cycle
        cycle.transport = OneWrite(self.transport, cycle)

    def on_response_complete(self) -> None:
        transport: Any = self.cycle.transport
        transport.flush()
        super().on_response_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # What comes next is another head.
        self._in_head = True
        self._head_bytes = 0

    def _config(self) -> ServerConfig:
        config: ServerConfig = self.config.holdfast  # type: ignore[attr-defined]
        return config

    def _set_timer(self) -> None:
        self._timer = self.loop.call_later(self._config().header_timeout_s, self._too_slow)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        self._refuse(b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self.transport.close()
