"""The HTTP door as an ASGI application: from a request to its answer.

    headers ─► route ─► who calls, and may they ─► query and body ─► handler ─► JSON, or a problem

Whatever goes wrong on the way is told as problem+json with a stable code; what is wrong with the server itself is
logged, and told without details. A call that waits ends when its caller goes away, when its key ends, and when the
server stops.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from holdfast.api.auth import Authenticator
from holdfast.api.errors import PROBLEM_TYPE, RETRY_AFTER_S, http_status, problem
from holdfast.api.nouns import Nouns
from holdfast.api.operation import Operation
from holdfast.api.operations import OPERATIONS
from holdfast.api.rest import pages
from holdfast.api.rest.calls import Call, Stream
from holdfast.api.rest.documents import read_document, read_query
from holdfast.api.rest.handlers import HANDLERS, Handler
from holdfast.api.rest.protocol import ABORT
from holdfast.api.rest.routing import Router
from holdfast.api.rest.sessions import Guests
from holdfast.api.rest.watches import ListWatches
from holdfast.config import ServerConfig
from holdfast.contract.principals import Principal
from holdfast.errors import (
    BodyTooLarge,
    EngineStopped,
    Forbidden,
    HeadersTooLarge,
    HoldfastError,
    MalformedBody,
    MediaTypeRefused,
    RouteNotFound,
    StorageError,
    Unavailable,
)
from holdfast.model.key_text import redact_keys
from holdfast.model.keys import Role
from holdfast.model.names import check_name
from holdfast.telemetry.traces import CALLER

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

log = logging.getLogger("holdfast.api")
access = logging.getLogger("holdfast.access")

JSON: Final = b"application/json"
OFF_LOOP_BYTES: Final = 256 * 1024
MOST_PARAMETERS: Final = 200
STUCK_READER_S: Final = 60.0
DEFAULT_ORG: Final = "default"
_ENCODE: Final = msgspec.json.Encoder().encode
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_LOCAL_HOST: Final = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?", re.IGNORECASE)
_COMMON: Final[Headers] = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


_BEGINNING: Final = secrets.token_hex(6)
_NUMBERS: Final = itertools.count(1)


def _new_id() -> str:
    """For the log, unlike any other process's. Nothing is secret about it."""
    return f"{_BEGINNING}-{next(_NUMBERS):x}"


class Request:
    """What is known of a request, as far as it has come."""

    __slots__ = (
        "address",
        "answered",
        "headers",
        "method",
        "operation",
        "path",
        "principal",
        "receive",
        "request_id",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self.headers.setdefault(name, []).append(value)
        self.operation: Operation | None = None
        self.principal: Principal | None = None
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        self.answered = False
        sane = [value for value in self.all(b"x-request-id") if _REQUEST_ID.fullmatch(value)]
        self.request_id = sane[0].decode() if sane else _new_id()

    def abort(self) -> None:
        """Cut the connection: the caller has gone, or has got half an answer."""
        cut = self.scope.get("extensions", {}).get(ABORT)
        if cut is not None:
            cut()

    def header(self, name: bytes) -> bytes | None:
        """The value of a header; None if there is none. Raises for one that is there twice with different values."""
        values = self.headers.get(name)
        if values is None:
            return None
        if len(values) > 1 and len(set(values)) > 1:
            raise MalformedBody(f"the header {name.decode()} is there twice", field=name.decode())
        return values[0]

    def all(self, name: bytes) -> list[bytes]:
        return self.headers.get(name, [])

    def text(self, name: bytes) -> str | None:
        value = self.header(name)
        if value is None:
            return None
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedBody(f"the header {name.decode()} is not UTF-8", field=name.decode()) from None


class RestDoor:
    """One per server. `close` ends what waits and streams; other requests finish."""

    def __init__(self, nouns: Nouns, authenticator: Authenticator, config: ServerConfig) -> None:
        self._nouns = nouns
        self._authenticator = authenticator
        self._config = config
        self._router = Router(OPERATIONS)
        self._lists = ListWatches(nouns.api, nouns.feeds)
        self._pages = pages.pages() if config.documentation else {}
        self.guests = Guests(authenticator, config.streams)

    async def close(self) -> None:
        await self.guests.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        request = Request(scope, receive)
        request.address = self._authenticator.address(request.address, request.all(b"x-forwarded-for"))
        status = 499
        try:
            status = await self._serve(request, send)
        except HoldfastError as error:
            status = await self._refuse(request, send, error)
        except ConnectionAbortedError:
            request.abort()
        except asyncio.CancelledError:
            # The grace is over. Nobody above could make more of it, and uvicorn would call it a fault.
            status = await self._refuse(request, send, EngineStopped("the server is being shut down"))
        except Exception:
            log.exception("request %s failed", request.request_id)
            status = await self._fail(request, send)
        finally:
            if self._config.access_log and access.isEnabledFor(logging.INFO):
                self._note(request, status, time.perf_counter() - began)

    # --- in ---

    async def _serve(self, request: Request, send: Send) -> int:
        if sum(len(name) + len(value) + 4 for name, value in request.scope["headers"]) > self._config.header_bytes:
            raise HeadersTooLarge(f"the headers have more than {self._config.header_bytes} bytes")
        page = self._pages.get(request.path)
        if page is not None and request.method in {"GET", "HEAD"}:
            await self._page(request, send, page)
            return 200
        operation, path = self._router.find(request.method, request.path)
        request.operation = operation
        org = await self._admit(request, operation, path)
        call = Call(
            operation=operation,
            nouns=self._nouns,
            lists=self._lists,
            principal=request.principal,
            org=org,
            path=path,
            query=self._query(request, operation),
            body=await self._body(request, operation),
            key=self._key(request),
            last_event_id=request.text(b"last-event-id"),
            address=request.address,
        )
        answer = await self._run(request, call)
        if isinstance(answer, Stream):
            await (self._no_stream if request.method == "HEAD" else self._stream)(request, send, answer)
            return 200
        await self._answer(request, send, operation.status, answer)
        return operation.status

    async def _admit(self, request: Request, operation: Operation, path: dict[str, str]) -> str:
        """Who calls, and whether they may; the org they act in."""
        org = path.get("org")
        if operation.role is None:
            return DEFAULT_ORG
        principal = await self._authenticator.principal(request.all(b"authorization"), address=request.address, org=org)
        request.principal = principal
        if principal.key_id is None:
            self._check_host(request)
        self._authenticator.count(principal, request.address)
        if org is not None and org != principal.org:
            raise RouteNotFound
        check_name(principal.org, "org")
        self._authenticator.require(principal, operation.role)
        return principal.org

    def _check_host(self, request: Request) -> None:
        """Without keys, a page from elsewhere whose name was made to point here must not be let in."""
        host = request.text(b"host") or ""
        if not _LOCAL_HOST.fullmatch(host):
            raise Forbidden("without keys this server answers to localhost only, by that name")

    def _key(self, request: Request) -> str | None:
        key = request.text(b"idempotency-key")
        if key is not None:
            check_name(key, "Idempotency-Key")
        return key

    def _query(self, request: Request, operation: Operation) -> Any:
        raw: bytes = request.scope.get("query_string", b"")
        if not raw:
            return None if operation.query is None else operation.query()
        try:
            pairs = parse_qsl(
                raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
            )
        except ValueError as error:
            raise MalformedBody(f"the query can't be read: {error}", field="query") from None
        if operation.query is None:
            if pairs:
                raise MalformedBody(f"there is no parameter {pairs[0][0]!r:.100} here", field=pairs[0][0][:255])
            return None
        return read_query(pairs, operation.query)

    async def _body(self, request: Request, operation: Operation) -> Any:
        if operation.body is None:
            await self._read(request, 0)
            return None
        limit = self._config.payload_body_bytes if operation.payload else self._config.body_bytes
        data = await self._read(request, limit)
        if request.header(b"content-encoding") not in {None, b"identity"}:
            raise MediaTypeRefused("compressed bodies are not taken: send the JSON as it is")
        if not data and not operation.body.__struct_config__.forbid_unknown_fields:
            return operation.body()
        kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind != JSON and (data or kind):
            raise MediaTypeRefused
        if not data:
            data = b"{}"
        if len(data) > OFF_LOOP_BYTES:
            return await asyncio.to_thread(read_document, data, operation.body, self._config)
        return read_document(data, operation.body, self._config)

    async def _read(self, request: Request, limit: int) -> bytes:
        declared = request.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
            raise _too_large(limit)
        parts, size = list[bytes](), 0
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionAbortedError("the caller has gone away")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    # --- and out ---

    async def _run(self, request: Request, call: Call) -> Any:
        handler = HANDLERS[call.operation.name]
        CALLER.set(request.text(b"traceparent"))
        # Without keys there is nobody whose acts these would be.
        if call.principal is None or call.principal.key_id is None or not _is_recorded(call.operation):
            return await self._handle(handler, request, call)
        subject = call.path.get("workflow_execution_id", "")
        async with self._authenticator.audited(call.principal, call.operation.name, subject, address=call.address):
            return await self._handle(handler, request, call)

    async def _handle(self, handler: Handler, request: Request, call: Call) -> Any:
        if call.operation.waits:
            return await self.guests.stay(handler(call), request.principal, request.receive)
        return await handler(call)

    async def _answer(self, request: Request, send: Send, status: int, answer: Any) -> None:
        kind = JSON if request.operation is None else request.operation.media.encode()
        data = b"" if answer is None else answer if isinstance(answer, bytes) else _ENCODE(answer)
        await _respond(request, send, status, data, [(b"content-type", kind), *self._also(request)])

    def _also(self, request: Request) -> Headers:
        return [*_COMMON, (b"x-request-id", request.request_id.encode())]

    async def _page(self, request: Request, send: Send, page: pages.Page) -> None:
        await _respond(request, send, 200, page.data, [*page.headers, *self._also(request)])

    async def _stream(self, request: Request, send: Send, stream: Stream) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *self._also(request)]
        request.answered = True
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # Sent at once, so that the reader knows that it is connected.
        await send({"type": "http.response.body", "body": b": holdfast\n\n", "more_body": True})
        frames = self.guests.frames(stream.frames, request.principal, request.receive, self._config.heartbeat_s)
        try:
            async for frame in frames:
                async with asyncio.timeout(STUCK_READER_S):
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
        except HoldfastError as error:
            told = _ENCODE(problem(error, request.request_id))
            frame = b"event: problem\ndata: %b\n\n" % told
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        except TimeoutError:
            log.info("a reader of %s has not read for %s s", request.request_id, STUCK_READER_S)
            raise ConnectionAbortedError("the caller does not read") from None
        finally:
            await frames.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _no_stream(self, request: Request, send: Send, stream: Stream) -> None:
        """What a stream would begin with, for those who want to know no more."""
        await stream.close()
        await _respond(request, send, 200, b"", [(b"content-type", b"text/event-stream"), *self._also(request)])

    async def _refuse(self, request: Request, send: Send, error: HoldfastError) -> int:
        if isinstance(error, StorageError):
            log.error("request %s: %s", request.request_id, error)
        status = http_status(error)
        headers = [(b"content-type", PROBLEM_TYPE.encode()), *self._also(request)]
        if isinstance(error, Unavailable):
            wait = error.details.get("retry_after_s", RETRY_AFTER_S)
            headers.append((b"retry-after", b"%d" % max(1, round(wait))))
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if "allowed" in error.details:
            headers.append((b"allow", ", ".join(error.details["allowed"]).encode()))
        if isinstance(error, BodyTooLarge | HeadersTooLarge):
            headers.append((b"connection", b"close"))
        await _respond(request, send, status, _ENCODE(problem(error, request.request_id)), headers)
        return status

    async def _fail(self, request: Request, send: Send) -> int:
        """What is wrong is in the log, under the request's id; callers are told no more."""
        request_id = request.request_id
        told = {
            "type": "urn:holdfast:error:internal_error",
            "title": "The server has failed",
            "status": 500,
            "code": "internal_error",
            "detail": f"something went wrong in the server; its log has it under request id {request_id}",
            "request_id": request_id,
        }
        await _respond(request, send, 500, _ENCODE(told), [(b"content-type", PROBLEM_TYPE.encode()), *_COMMON])
        return 500

    def _note(self, request: Request, status: int, seconds: float) -> None:
        """One line per request, as JSON: what a caller puts in stays inside a text. Neither query nor headers."""
        operation, principal = request.operation, request.principal
        line = {
            "method": request.method[:20],
            "path": redact_keys(request.path.decode("latin-1"))[:500],
            "operation": operation.name if operation is not None else None,
            "status": status,
            "ms": round(seconds * 1000, 2),
            "request_id": request.request_id,
            "key_id": principal.key_id if principal is not None else None,
            "address": request.address,
        }
        access.info("%s", _ENCODE(line).decode())


def _is_recorded(operation: Operation) -> bool:
    """What only an admin may do is in the org's record. Keys and pauses are recorded in their own transaction."""
    if operation.row is not None:
        return operation.row.audited
    return operation.role is Role.ADMIN and operation.method != "GET"


def _too_large(limit: int) -> BodyTooLarge:
    if not limit:
        return BodyTooLarge("this operation takes no body", limit=0)
    return BodyTooLarge(f"the body has more than {limit} bytes", limit=limit)


async def _respond(request: Request, send: Send, status: int, data: bytes, headers: Headers) -> None:
    if request.answered:
        request.abort()
        return
    request.answered = True
    if status != 204:
        headers = [*headers, (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else data})
