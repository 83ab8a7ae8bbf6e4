"""An HTTP door on an engine of the test, and a plain way to call it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from holdfast import Engine
from holdfast.config import ServerConfig
from holdfast.contract.keys import CreateKey
from holdfast.model.keys import Role
from holdfast.server.api_server import ApiServer
from holdfast.server.auth import AuthSettings

ORG = "/api/orgs/default"
EXECUTIONS = f"{ORG}/workflow-executions"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class ApiClient:
    """Calls a server over a socket of its own for each call, byte by byte as given."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.port = server.port
        self.url = server.url

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        data: bytes | None = None,
    ) -> Reply:
        given = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
        if data is None and body is not None:
            data = json.dumps(body).encode()
        names = {name.lower() for name, _ in given}
        if data is not None and "content-type" not in names:
            given.append(("content-type", "application/json"))
        if key is not None:
            given.append(("authorization", f"Bearer {key}"))
        if "host" not in names:
            given.append(("host", f"127.0.0.1:{self.port}"))
        given += [("content-length", str(len(data or b""))), ("connection", "close")]
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given) + "\r\n"
        return await self.raw(head.encode("utf-8", "surrogateescape") + (data or b""))

    async def raw(self, sent: bytes) -> Reply:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        try:
            writer.write(sent)
            return read_reply(await asyncio.wait_for(reader.read(-1), 30))
        finally:
            writer.close()

    async def get(self, path: str, **options: Any) -> Reply:
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        return await self.call("POST", path, {} if body is None and "data" not in options else body, **options)

    @asynccontextmanager
    async def stream(self, path: str, *, key: str | None = None, last: int | None = None) -> AsyncIterator[Frames]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            lines = [f"GET {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}"]
            if key is not None:
                lines.append(f"authorization: Bearer {key}")
            if last is not None:
                lines.append(f"last-event-id: {last}")
            writer.write("\r\n".join([*lines, "", ""]).encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            yield Frames(int(head.split(b" ")[1]), head, reader)
        finally:
            writer.close()


class Frame(NamedTuple):
    event: str
    id: int | None
    data: Any


class Frames:
    """Server-sent events as they come."""

    def __init__(self, status: int, head: bytes, reader: asyncio.StreamReader) -> None:
        self.status = status
        self.head = head
        self._reader = reader
        self._text = b""

    async def next(self) -> Frame | None:
        """The next frame that is no comment; None at the end."""
        while True:
            while b"\n\n" not in self._text:
                size = int((await asyncio.wait_for(self._reader.readuntil(b"\r\n"), 30)).strip() or b"0", 16)
                part = await self._reader.readexactly(size + 2)
                if not size:
                    return None
                self._text += part[:-2]
            frame, _, self._text = self._text.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in frame.decode().split("\n") if not line.startswith(":"))
            if fields:
                number = fields.get("id")
                return Frame(fields["event"], None if number is None else int(number), json.loads(fields["data"]))

    async def take(self, count: int) -> list[Frame]:
        taken: list[Frame] = []
        for _ in range(count):
            frame = await self.next()
            assert frame is not None, f"the stream has ended after {taken}"
            taken.append(frame)
        return taken


def read_reply(data: bytes) -> Reply:
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    return Reply(int(status.split(" ")[1]), headers, body)


def _joined(data: bytes) -> bytes:
    parts = []
    while data:
        size, _, data = data.partition(b"\r\n")
        parts.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]
    return b"".join(parts)


@asynccontextmanager
async def rest_server(
    engine: Engine, *, auth: AuthSettings | None = None, config: ServerConfig | None = None
) -> AsyncIterator[ApiClient]:
    server = ApiServer(engine.engine_api(), config or ServerConfig(port=0, shutdown_grace_s=1.0), auth)
    await server.start()
    try:
        yield ApiClient(server)
    finally:
        await server.stop()


async def make_key(engine: Engine, role: Role, org: str = "default") -> str:
    made = await engine.engine_api().keys.create(CreateKey(org=org, name=f"{org} {role}", role=role))
    text: str = made.text
    return text
