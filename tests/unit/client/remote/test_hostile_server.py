"""Servers, and proxies in front of them, that answer in every way HTTP allows and in some that it does not.

A call gets its own answer or an error, never the answer to another call."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client.remote.answers import HEAD_BYTES, Answer, AnswerReader, Body, plain_answer
from holdfast.client.remote.caller import Caller
from holdfast.client.remote.connection import Connections, read_url
from holdfast.errors import ServerUnreachable, UnexpectedAnswer
from tests.certificates import needs_openssl, self_signed

EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n"
CLOSE = b""
"""As a part of an answer: the connection ends here."""


def plain(text: str, *more: bytes, status: bytes = b"200 OK") -> bytes:
    data = f'"{text}"'.encode()
    lines = [b"HTTP/1.1 " + status, b"content-type: application/json", b"content-length: %d" % len(data), *more]
    return b"\r\n".join([*lines, b"", data])


def chunked(*parts: bytes, trailers: bytes = b"", kind: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailers + b"\r\n"


class Large(msgspec.Struct):
    data: str


class Server:
    """Answers the n-th request with the n-th entry, in pieces with a pause between them."""

    def __init__(self, *answers: bytes | list[bytes]) -> None:
        self._answers = list(answers)
        self.connections = 0
        self.requests: list[str] = []
        self.port = 0
        self.reads_bodies = True
        self._over = asyncio.Event()
        self._serving: set[asyncio.Task[None] | None] = set()
        self._server: asyncio.Server | None = None

    async def open(self, tls: ssl.SSLContext | None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving.add(asyncio.current_task())
        try:
            while self._answers:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = head.lower().partition("content-length: ")[2].partition("\r")[0]
                self.requests.append(head.partition(" HTTP")[0])
                if self.reads_bodies:
                    await reader.readexactly(int(length or 0))
                await self._say(writer, self._answers.pop(0))
                if not self.reads_bodies:
                    break
            await self._over.wait()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _say(self, writer: asyncio.StreamWriter, answer: bytes | list[bytes]) -> None:
        for part in [answer] if isinstance(answer, bytes) else answer:
            if part == CLOSE:
                raise ConnectionResetError
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        assert self._server is not None
        self._over.set()
        self._server.close()
        await asyncio.gather(*(one for one in self._serving if one is not None))


class Serving:
    """Servers, and the connections of a client to them."""

    def __init__(self, scheme: str, folder: Path) -> None:
        self._scheme = scheme
        self._ours = self._theirs = None
        if scheme == "https":
            certificate, key = self_signed(folder)
            self._theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._theirs.load_cert_chain(certificate, key)
            self._ours = ssl.create_default_context(cafile=str(certificate))
        self._opened: list[Any] = []

    async def __call__(self, *answers: bytes | list[bytes], retry_s: float = 0.0) -> tuple[Server, Caller]:
        server = Server(*answers)
        await server.open(self._theirs)
        url = f"{self._scheme}://127.0.0.1:{server.port}"
        caller = Caller(url, None, timeout_s=5.0, retry_s=retry_s, tls=self._ours, connections=1)
        self._opened += [caller, server]
        return server, caller

    async def close(self) -> None:
        for one in self._opened:
            await one.close()


@pytest.fixture(params=["http", pytest.param("https", marks=needs_openssl)])
async def serving(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Serving]:
    opened = Serving(request.param, tmp_path)
    yield opened
    await opened.close()


async def ask(caller: Caller, *paths: str) -> list[str]:
    return [await caller.get(path, str) for path in paths]


async def test_early_hints_are_not_the_answer(serving):
    server, caller = await serving(EARLY_HINTS + plain("one"), [EARLY_HINTS, EARLY_HINTS, plain("two")], plain("three"))

    assert ["one", "two", "three"] == await ask(caller, "/one", "/two", "/three")
    assert 1 == server.connections


async def test_trailers_belong_to_their_answer(serving):
    trailers = b"t: 1\r\nu: 2\r\n"
    server, caller = await serving(chunked(b'"o', b'ne"', trailers=trailers), plain("two"))

    assert ["one", "two"] == await ask(caller, "/one", "/two")
    assert 1 == server.connections


@pytest.mark.parametrize("extra", [[plain("one") + plain("not asked for")], [plain("one"), plain("not asked for")]])
async def test_bytes_behind_an_answer_end_the_connection(serving, extra):
    """In the same packet or after it."""
    server, caller = await serving(extra, plain("two"))
    first = await ask(caller, "/one")
    await asyncio.sleep(0.05)

    assert ["one", "two"] == first + await ask(caller, "/two")
    assert 2 == server.connections


async def test_bytes_that_the_loop_has_not_read_are_not_the_next_answer():
    """A loop that is busy takes the connection again before it has seen what came on it."""
    said = threading.Event()

    def serve(listening: socket.socket) -> None:
        for answers in ([plain("one"), plain("not asked for")], [plain("two")]):
            accepted, _ = listening.accept()
            with accepted, suppress(OSError):
                accepted.recv(10_000)
                for answer in answers:
                    accepted.sendall(answer)
                    said.wait(0.05)
                said.set()
                accepted.recv(10_000)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(asyncio.to_thread(serve, listening))
        connections = Connections(read_url(f"http://127.0.0.1:{listening.getsockname()[1]}"), None, 5.0, 1)
        answers = [await connections.exchange("GET", "/one", {}, None, 5.0)]
        said.wait(5.0)
        answers += [await connections.exchange("GET", "/two", {}, None, 5.0)]
        await connections.close()
        await serving

    assert [b'"one"', b'"two"'] == [answer.data for answer in answers]


async def test_an_answer_before_the_request_was_complete(serving):
    """A server that refuses a large body does so before it has read it. The connection is not used again."""
    server, caller = await serving(*[plain("no", status=b"413 Content Too Large")] * 2)
    server.reads_bodies = False

    for number in (1, 2):
        with pytest.raises(UnexpectedAnswer, match="413"):
            await caller.post("/large", Large(data="x" * 20_000_000), str)
        assert number == server.connections


@pytest.mark.parametrize(
    "cut",
    [
        [CLOSE],
        [b"HTTP/1.1 2", CLOSE],
        [b"HTTP/1.1 200 OK\r\ncontent-le", CLOSE],
        [plain("one")[:-2], CLOSE],
        [chunked(b'"one"')[:-3], CLOSE],
        [EARLY_HINTS, CLOSE],
    ],
    ids=["nothing", "status", "headers", "body", "chunks", "hints"],
)
async def test_a_connection_that_ends_in_the_middle(serving, cut):
    server, caller = await serving(cut, plain("again"), retry_s=5.0)

    assert ["again"] == await ask(caller, "/one")
    assert 2 == server.connections


async def test_what_can_not_be_repeated_is_not_after_half_an_answer(serving):
    server, caller = await serving([plain("one")[:-2], CLOSE], plain("again"), retry_s=5.0)

    with pytest.raises(ServerUnreachable, match="lost"):
        await caller.delete("/one")
    assert ["DELETE /one"] == server.requests


async def test_a_kept_connection_that_the_server_has_closed_is_not_used(serving):
    """Also by calls that can't be repeated."""
    server, caller = await serving([plain("one"), CLOSE], plain("two"))
    first = await ask(caller, "/one")
    await asyncio.sleep(0.05)
    await caller.delete("/two")

    assert (["one"], 2) == (first, server.connections)


async def test_a_kept_connection_that_ends_while_it_is_used_again_is_repeated(serving):
    server, caller = await serving(plain("one"), [CLOSE], plain("two"), retry_s=5.0)

    assert ["one", "two"] == await ask(caller, "/one", "/two")
    assert (["GET /one", "GET /two", "GET /two"], 2) == (server.requests, server.connections)


@pytest.mark.parametrize("lines", [b"x: y\r\n" * HEAD_BYTES, b"x: " + b"y" * HEAD_BYTES * 8])
async def test_huge_headers(serving, lines):
    _, caller = await serving(b"HTTP/1.1 200 OK\r\n" + lines)

    with pytest.raises(UnexpectedAnswer, match="headers are too large"):
        await ask(caller, "/one")


@pytest.mark.parametrize(
    "lengths",
    [b"content-length: 5, 7\r\n", b"content-length: 5\r\ncontent-length: 7\r\n", b"content-length: -5\r\n"],
)
async def test_lengths_that_contradict_each_other(serving, lengths):
    _, caller = await serving(b"HTTP/1.1 200 OK\r\n" + lengths + b'\r\n"one"')

    with pytest.raises(UnexpectedAnswer, match="not HTTP"):
        await ask(caller, "/one")


async def test_a_length_that_is_too_small(serving):
    """The answer can't be read, and its rest is not the next one."""
    server, caller = await serving(b'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"one"', plain("two"))
    with pytest.raises(UnexpectedAnswer):
        await ask(caller, "/one")

    assert ["two"] == await ask(caller, "/two")
    assert 2 == server.connections


async def test_a_length_that_is_too_large(serving):
    _, caller = await serving([b'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"one"', CLOSE], plain("two"))
    with pytest.raises(ServerUnreachable):
        await ask(caller, "/one")

    assert ["two"] == await ask(caller, "/two")


async def test_an_answer_without_a_length_ends_with_its_connection(serving):
    server, caller = await serving([b'HTTP/1.1 200 OK\r\n\r\n"o', b'ne"', CLOSE], plain("two"))

    assert ["one", "two"] == await ask(caller, "/one", "/two")
    assert 2 == server.connections


@pytest.mark.parametrize("last", [b"connection: close", b"Connection: Close"])
async def test_a_server_that_takes_its_leave_is_left(serving, last):
    server, caller = await serving(plain("one", last), plain("two"))

    assert ["one", "two"] == await ask(caller, "/one", "/two")
    assert 2 == server.connections


async def test_another_protocol_is_not_spoken(serving):
    _, caller = await serving(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n")

    with pytest.raises(UnexpectedAnswer, match="not HTTP"):
        await ask(caller, "/one")


# --- streams ---

EVENTS = b"id: 1\nevent: word\ndata: 1\n\n", b"event: end\ndata: 2\n\n"


async def read(caller: Caller) -> list[bytes]:
    return [event.data async for event in caller.events("/stream", {}, last="end")]


async def test_a_stream_after_early_hints_with_trailers(serving):
    stream = chunked(*EVENTS, trailers=b"t: 1\r\n", kind=b"text/event-stream; charset=utf-8")
    _, caller = await serving([EARLY_HINTS, stream])

    assert [b"1", b"2"] == await read(caller)


async def test_a_stream_without_chunks(serving):
    """As a proxy that speaks HTTP/1.0 passes it on."""
    head = b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    _, caller = await serving([head, *EVENTS, CLOSE])

    assert [b"1", b"2"] == await read(caller)


async def test_a_stream_that_ends_in_the_middle_is_taken_up_again(serving):
    first = chunked(EVENTS[0], kind=b"text/event-stream")[:-5]
    server, caller = await serving([first, CLOSE], chunked(EVENTS[1], kind=b"text/event-stream"), retry_s=5.0)

    assert [b"1", b"2"] == await read(caller)
    assert 2 == server.connections


async def test_a_stream_that_is_no_http(serving):
    _, caller = await serving([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"])

    with pytest.raises(UnexpectedAnswer, match="not HTTP"):
        await read(caller)


async def test_a_stream_that_is_read_slowly_holds_up_its_server():
    """What has not been read waits in the server's process, not in this one."""
    sent, held_up = 0, asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        with suppress(TimeoutError):
            while sent < 500_000_000:
                writer.write(b"x" * 100_000)
                sent += 100_000
                async with asyncio.timeout(0.3):
                    await writer.drain()
        writer.transport.abort()
        held_up.set()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    connections = Connections(read_url(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), None, 5.0, 1)
    stream: Any = await connections.stream("/", {}, 5.0, 5.0)
    await anext(stream)
    await held_up.wait()

    assert 100_000 <= sent < 100_000_000
    await stream.aclose()
    await connections.close()
    server.close()


# --- the short way for plain answers ---

_TOKENS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 204 No Content\r\n",
        b"HTTP/1.1 103 Early Hints\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 500 \r\n",
        b"content-length: 2\r\n",
        b"Content-Length: 2\r\n",
        b"content-length: 02\r\n",
        b"content-length:2\r\n",
        b"content-length : 2\r\n",
        b"content-length: 0\r\n",
        b"transfer-encoding: chunked\r\n",
        b"connection: close\r\n",
        b"x-a: b c\r\n",
        b"x-a: \xff\r\n",
        b" folded\r\n",
        b"\r\n",
        b"\n",
        b"{}",
        b"2\r\n{}\r\n0\r\n\r\n",
    ]
)


def read_by_h11(data: bytes) -> Answer:
    reader, body = AnswerReader("GET"), Body()
    reader.feed(data)
    head = reader.head()
    assert head is not None
    while part := reader.piece():
        body.add(part)
    assert reader.clean
    return Answer(head.status, body.whole())


@given(st.lists(_TOKENS, max_size=7).map(b"".join))
def test_a_plain_answer_is_what_h11_reads(data):
    """Whatever takes the short way is complete, has nothing behind it, and h11 reads the same."""
    answer = plain_answer(data)

    assert answer is None or answer == read_by_h11(data)


def test_answers_of_a_holdfast_server_take_the_short_way():
    assert Answer(200, b'"one"') == plain_answer(plain("one", b"x-request-id: 0de29ef12117-1", b"date: Wed, 18 Nov"))


@given(st.integers(0, 120), st.integers(0, 120))
def test_an_answer_may_be_cut_anywhere(first, second):
    data = EARLY_HINTS + chunked(b'"o', b'ne"', trailers=b"t: 1\r\n")
    reader, body = AnswerReader("GET"), Body()
    head = None
    for piece in (data[:first], data[first : first + second], data[first + second :]):
        if piece:
            reader.feed(piece)
        head = head or reader.head()
        while head is not None and (part := reader.piece()):
            body.add(part)

    assert (b'"one"', True) == (body.whole(), reader.clean)
