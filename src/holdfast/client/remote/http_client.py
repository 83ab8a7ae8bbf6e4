"""One call over HTTP: sent, sent again where that is harmless, and its answer or error read.

A call that changes something carries a request id, so that a repeat after a lost connection is the same call. One
that can't carry any is repeated only if it has certainly not reached the server.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec

from holdfast.client.remote.event_streams import SILENCE_S, ServerEvent, server_events
from holdfast.client.remote.http_pool import Answer, ConnectionPool, read_url
from holdfast.errors import InvalidServer, ServerUnreachable, UnexpectedAnswer, revived
from holdfast.model.validation import check_text

T = TypeVar("T")
_ENCODE: Final = msgspec.json.Encoder().encode
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 2.0
PROBLEM: Final = "problem"
"""The kind of event by which a stream ends with an error."""


def new_request_id() -> str:
    return uuid4().hex


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What the server says of an error, as far as it matters here."""

    code: str
    detail: str
    field: str | None = None
    details: dict[str, Any] = {}


class HttpClient:
    """`retry_s`: for how long a call is tried again while the server can't be reached. `timeout_s`: how long it may
    take to answer, beyond what it was asked to wait."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        *,
        timeout_s: float = 30.0,
        retry_s: float = 10.0,
        tls: ssl.SSLContext | None = None,
        connections: int = 100,
    ) -> None:
        self._connections = ConnectionPool(read_url(url), tls, connect_timeout_s=min(timeout_s, 10.0), most=connections)
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._headers = {"accept": "application/json"}
        if api_key is not None:
            if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
                raise InvalidServer("this is not an API key: it has characters that no key has", field="api_key")
            self._headers["authorization"] = f"Bearer {api_key}"

    async def close(self) -> None:
        await self._connections.close()

    async def get(self, path: str, into: type[T], query: dict[str, Any] | None = None, wait_s: float | None = 0.0) -> T:
        return _read(await self._send("GET", path + _query(query), None, wait_s, repeatable=True), into)

    async def post(
        self, path: str, body: msgspec.Struct, into: type[T], *, repeatable: bool = True, wait_s: float | None = 0.0
    ) -> T:
        try:
            data = _ENCODE(body)
        except UnicodeEncodeError:
            _blame(body)
            raise
        return _read(await self._send("POST", path, data, wait_s, repeatable=repeatable), into)

    async def events(self, path: str, query: dict[str, Any], *, last: str) -> AsyncIterator[ServerEvent]:
        """A stream of the server's, up to and with the first event of kind `last`. It is taken up again when it breaks
        off; what the server says of an error is raised."""

        async def opened(after: int | None) -> AsyncIterator[bytes]:
            again = {} if after is None else {"last-event-id": str(after)}
            headers = {**self._headers, "accept": "text/event-stream", **again}
            found = await self._connections.stream(path + _query(query), headers, self._timeout_s, SILENCE_S)
            if not isinstance(found, Answer):
                return found
            _check(found)
            raise UnexpectedAnswer("the server has answered without a stream: is it of another version?")

        async for event in server_events(opened, last=last, retry_s=self._retry_s):
            if event.kind == PROBLEM:
                _raise(decoded(event.data, Problem))
            yield event

    async def delete(self, path: str, body: msgspec.Struct | None = None) -> None:
        data = None if body is None else _ENCODE(body)
        _check(await self._send("DELETE", path, data, 0.0, repeatable=False))

    async def _send(
        self, method: str, target: str, body: bytes | None, wait_s: float | None, *, repeatable: bool
    ) -> Answer:
        """`wait_s` None: it may take any time."""
        headers = self._headers if body is None else {**self._headers, "content-type": "application/json"}
        timeout_s = None if wait_s is None else self._timeout_s + wait_s
        give_up = time.monotonic() + self._retry_s
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await self._connections.exchange(method, target, headers, body, timeout_s)
            except ServerUnreachable as error:
                harmless = repeatable or error.details.get("sent") is False
                if not harmless or time.monotonic() + pause_s > give_up:
                    raise
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads callers, no secret
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def escaped(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="")


def _blame(body: msgspec.Struct) -> None:
    """Say which text can't be sent. What the engine would call it counts."""
    for name in body.__struct_fields__:
        value = getattr(body, name)
        texts = [*value, *value.values()] if isinstance(value, dict) else [value]
        for text in texts:
            if isinstance(text, str):
                check_text(text, _ENGINE_NAMES.get(name, name))


_ENGINE_NAMES: Final = {"workflow_version": "version"}


def _query(query: dict[str, Any] | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    try:
        return f"?{urlencode(given, doseq=True)}" if given else ""
    except UnicodeEncodeError:
        for name, value in given.items():
            for text in [value] if isinstance(value, str) else value:
                check_text(text, name)
        raise


def _read(answer: Answer, into: type[T]) -> T:
    _check(answer)
    return decoded(answer.data, into)


def decoded(data: bytes, into: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=into)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(f"the server's answer can't be read: {error}; is it of another version?") from error


def _check(answer: Answer) -> None:
    if 200 <= answer.status < 300:
        return
    try:
        problem = msgspec.json.decode(answer.data, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UnexpectedAnswer(
            f"the server answered {answer.status} without saying why: is this a Holdfast server?", status=answer.status
        ) from None
    _raise(problem)


def _raise(problem: Problem) -> NoReturn:
    details = problem.details if problem.field is None else {"field": problem.field, **problem.details}
    raise revived(problem.code, problem.detail, details)
