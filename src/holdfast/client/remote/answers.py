"""Answers of an HTTP server, read from bytes; nothing here waits.

h11 reads them. Most calls get an answer of the plainest kind, whole and in one piece, and for these h11 would cost more
than all the rest of a call: `plain_answer` recognizes them by a strict pattern, and leaves whatever differs to h11.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

import h11

from holdfast.errors import UnexpectedAnswer

HEAD_BYTES: Final = 64 * 1024
ANSWER_BYTES: Final = 256 * 1024 * 1024

_PLAIN: Final = re.compile(rb"HTTP/1\.1 (2\d\d|[45]\d\d) [ -~]*\r\n((?:[A-Za-z\d-]+: [!-~](?:[ -~]*[!-~])?\r\n)+)\r\n")
_FRAMING: Final = re.compile(rb"(?im)^(content-length|transfer-encoding|connection|upgrade): (.*)\r$")
_BODILESS: Final = (b"204", b"205")
_TOO_LARGE: Final = 431


class Answer(NamedTuple):
    status: int
    data: bytes


class Head(NamedTuple):
    status: int
    headers: dict[bytes, bytes]


def plain_answer(data: bytes) -> Answer | None:
    """The answer, if it is all of `data`, has its length, and says nothing else of how it ends. Not for HEAD."""
    head = _PLAIN.match(data)
    if head is None or head[1] in _BODILESS:
        return None
    framing = _FRAMING.findall(head[2])
    if len(framing) != 1 or framing[0][0].lower() != b"content-length":
        return None
    body = data[head.end() :]
    return Answer(int(head[1]), body) if framing[0][1] == b"%d" % len(body) else None


@cache
def _request(method: str) -> h11.Request:
    """All that h11 has to know of a request to read its answer; the request itself is written elsewhere."""
    return h11.Request(method=method, target="/", headers=[("host", "server")])


class AnswerReader:
    """Reads one answer. Interim answers (1xx) are skipped; trailers are read and dropped."""

    def __init__(self, method: str) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self._http.send(_request(method))
        self._http.send(h11.EndOfMessage())
        self._closed = False

    def feed(self, data: bytes) -> None:
        """Nothing: the server has closed its side."""
        self._closed = self._closed or not data
        self._http.receive_data(data)

    def head(self) -> Head | None:
        """None: it has not come yet. Raises UnexpectedAnswer and ConnectionError."""
        while isinstance(event := self._event(), h11.InformationalResponse):
            pass
        if event is None:
            return None
        headers = dict(event.headers)
        _check_size(int(headers.get(b"content-length", 0)))
        return Head(event.status_code, headers)

    def piece(self) -> bytes | None:
        """What has come of the body; nothing at its end. None: more has to come. Raises as `head`."""
        event = self._event()
        if event is None:
            return None
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    @property
    def clean(self) -> bool:
        """Whether the answer has ended as announced, nothing came after it, and another may follow."""
        return self._http.their_state is h11.DONE and not self._closed and not self._http.trailing_data[0]

    def _event(self) -> Any:
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise self._meaning(error) from error
        return None if event is h11.NEED_DATA else event

    def _meaning(self, error: h11.RemoteProtocolError) -> Exception:
        if self._closed:
            return ConnectionResetError("the server closed it before its answer was complete")
        if error.error_status_hint == _TOO_LARGE:
            return UnexpectedAnswer("the answer's headers are too large")
        return UnexpectedAnswer(f"this is not HTTP: {error}"[:200])


class Body:
    """The parts of a body, up to what this client takes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        _check_size(self._size)

    def whole(self) -> bytes:
        return b"".join(self._parts)


def _check_size(size: int) -> None:
    if size > ANSWER_BYTES:
        raise UnexpectedAnswer(f"the answer has more than {ANSWER_BYTES} bytes")
