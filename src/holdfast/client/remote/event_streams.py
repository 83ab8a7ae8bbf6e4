"""Server-sent events, read: a stream that is taken up again where it broke off.

Only what a Holdfast server sends is understood: `id`, `event`, `data` in one line each, and comments.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from holdfast.backoff import Backoff
from holdfast.errors import ServerUnreachable, UnexpectedAnswer

SILENCE_S: Final = 60.0
"""A server that has nothing to tell says so four times in this time."""
LINE_BYTES: Final = 64 * 1024 * 1024
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0


class ServerEvent(NamedTuple):
    number: int | None
    kind: str
    data: bytes


Open = Callable[[int | None], Awaitable[AsyncIterator[bytes]]]
"""Opens the stream after the event of a number, and gives its bytes as they come."""


async def server_events(open_stream: Open, *, last: str, retry_s: float) -> AsyncIterator[ServerEvent]:
    """Events up to and with the first of kind `last`. After a broken connection it goes on after the last number;
    a server that can't be reached for `retry_s` is given up. Refusals are raised."""
    number: int | None = None
    backoff, give_up = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S), time.monotonic() + retry_s
    while True:
        try:
            async for event in _events(await open_stream(number)):
                backoff.reset()
                give_up = time.monotonic() + retry_s
                number = event.number if event.number is not None else number
                yield event
                if event.kind == last:
                    return
        except ServerUnreachable:
            if time.monotonic() + backoff.pause_s > give_up:
                raise
        # Also after a stream that just ended: the server was stopped.
        await asyncio.sleep(backoff.jittered())


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    number: int | None = None
    kind, data = "message", b""
    async for line in _lines(parts):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                yield ServerEvent(number, kind, data)
            number, kind, data = None, "message", b""
        elif name == b"id" and value.isdigit():
            number = int(value)
        elif name == b"event":
            kind = value.decode("utf-8", "replace")
        elif name == b"data":
            data = value


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    kept: list[bytes] = []
    size = 0
    async for part in parts:
        *ended, rest = part.split(b"\n")
        if ended:
            yield b"".join([*kept, ended[0]])
            for line in ended[1:]:
                yield line
            kept, size = [], 0
        kept.append(rest)
        size += len(rest)
        if size > LINE_BYTES:
            raise UnexpectedAnswer(f"a line of a stream has more than {LINE_BYTES} bytes")
