"""A way between two processes that can be cut, held up or closed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Self


class TcpProxy:
    """Passes connections on to a port of this machine."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.refuses = False
        self.connections = 0
        self.held = 0
        """How many pieces have come that are not passed on yet."""
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._pipes: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.resume()
        self._server.close()
        self.cut()
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection, as a network does."""
        for writer in list(self._writers):
            writer.transport.abort()

    def hold(self) -> None:
        """Pass nothing on, and say nothing."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self.connections += 1
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            pipe = asyncio.ensure_future(self._pass_on(source, sink))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._writers.add(sink)
        try:
            while data := await source.read(65_536):
                self.held += 1
                await self._flowing.wait()
                self.held -= 1
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            self._writers.discard(sink)
            with suppress(OSError):
                sink.transport.abort()
