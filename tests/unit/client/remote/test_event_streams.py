"""Server-sent events, as a client reads them."""

from collections.abc import AsyncIterator

import pytest

from holdfast.client.remote.event_streams import server_events
from holdfast.errors import ServerUnreachable


async def parts(*pieces: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if error is not None:
        raise error


class Server:
    """Gives these streams, one for each connection, and notes where the reader wanted to go on."""

    def __init__(self, *streams: AsyncIterator[bytes]) -> None:
        self.streams = list(streams)
        self.asked: list[int | None] = []

    async def open(self, after: int | None) -> AsyncIterator[bytes]:
        self.asked.append(after)
        if not self.streams:
            raise ServerUnreachable("nobody is there")
        return self.streams.pop(0)


async def read(server: Server, retry_s: float = 5.0):
    return [(e.number, e.kind, e.data) async for e in server_events(server.open, last="end", retry_s=retry_s)]


async def test_events_are_read_however_they_are_cut():
    """A piece may end anywhere; comments are left out."""
    text = b': hello\n\nid: 7\nevent: word\ndata: {"a": 1}\n\n: still here\n\nevent: end\ndata: {}\n\n'
    expected = [(7, "word", b'{"a": 1}'), (None, "end", b"{}")]

    for size in (1, 3, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert expected == await read(Server(parts(*pieces)))


async def test_a_broken_stream_is_taken_up_after_the_last_number():
    first = parts(b"id: 1\nevent: word\ndata: 1\n\nevent: other\ndata: 0\n\nid: 2\nev", error=ServerUnreachable("cut"))
    second = parts(b"id: 2\nevent: word\ndata: 2\n\n")
    third = parts(b"event: end\ndata: 3\n\n")
    server = Server(first, second, third)

    assert [b"1", b"0", b"2", b"3"] == [data for _, _, data in await read(server)]
    assert [None, 1, 2] == server.asked


async def test_a_server_that_stays_away_is_given_up():
    server = Server(parts(b"id: 1\nevent: word\ndata: 1\n\n"))

    with pytest.raises(ServerUnreachable):
        await read(server, retry_s=0.2)
    assert 1 == server.asked[-1]
