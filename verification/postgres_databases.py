"""Empty PostgreSQL databases for tests, made in advance.

A test waits only for what is not ready yet: one thread with one connection makes databases before they are asked for
and drops them after they were given back. It works on any server on which the user may create databases.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, urlsplit
from uuid import uuid4

if TYPE_CHECKING:
    import asyncpg

PATIENCE_S = 60.0


class SpareDatabases:
    """`take()` gives the URL of an empty database of one's own, `give_back(url)` has it dropped some time later.

    With a `template`, the databases are copies of that one; nobody may be connected to it. `close()` drops what was
    made and not given back, unless `drop=False`, for a server that is about to be thrown away.
    """

    def __init__(self, url: str, *, template: str = "template0", spares: int = 2) -> None:
        self._url = url
        self._template = template
        self._prefix = f"holdfast_test_{uuid4().hex[:12]}"
        self._orders: SimpleQueue[str | None] = SimpleQueue()  # a name to drop, "" to make one, None to end
        self._ready: SimpleQueue[str | Exception] = SimpleQueue()
        self._left: set[str] = set()
        self._made = 0
        self._drop_left = True
        self._thread = threading.Thread(target=self._work, name="spare databases", daemon=True)
        for _ in range(spares):
            self._orders.put("")
        self._thread.start()

    def take(self) -> str:
        self._orders.put("")
        made = self._ready.get(timeout=PATIENCE_S)
        if isinstance(made, Exception):  # perhaps of a time when the server was down: once more, now
            self._orders.put("")
            made = self._ready.get(timeout=PATIENCE_S)
        if isinstance(made, Exception):
            raise made
        return url_of(self._url, made)

    def give_back(self, url: str) -> None:
        self._orders.put(urlsplit(url).path.removeprefix("/"))

    @contextmanager
    def one(self) -> Iterator[str]:
        url = self.take()
        try:
            yield url
        finally:
            self.give_back(url)

    def close(self, *, drop: bool = True) -> None:
        self._drop_left = drop
        self._orders.put(None)
        self._thread.join(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        with _Admin(self._url) as admin:
            while (order := self._orders.get()) is not None:
                if order:
                    self._drop(admin, order)
                else:
                    self._ready.put(self._make(admin))
            for name in list(self._left) if self._drop_left else ():
                self._drop(admin, name)

    def _make(self, admin: _Admin) -> str | Exception:
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        try:
            admin.create_database(name, self._template)
        except Exception as error:  # noqa: BLE001 - raised where the database is asked for
            return error
        self._left.add(name)
        return name

    def _drop(self, admin: _Admin, name: str) -> None:
        # What can't be dropped is left to the one who owns the server.
        with suppress(Exception):
            admin.drop_database(name)
            self._left.discard(name)


def url_of(url: str, database: str) -> str:
    """The same server, another database."""
    return urlsplit(url)._replace(path=f"/{quote(database, safe='')}").geturl()


def create_database(url: str, name: str, template: str | None = None) -> str:
    """Create a database on the server of `url`; the answer is its URL."""
    _aside(url, lambda admin: admin.create_database(name, template or "template0"))
    return url_of(url, name)


def drop_database(url: str, name: str) -> None:
    """Drop a database, whoever is connected to it. One that is not there is fine."""
    _aside(url, lambda admin: admin.drop_database(name))


def _aside(url: str, work: Callable[[_Admin], None]) -> None:
    """In a thread of its own, because the caller's may have a running loop."""

    def run() -> None:
        with _Admin(url) as admin:
            work(admin)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()


class _Admin:
    """A connection for one thread, opened when it is needed and again when it was lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run_until_complete(self._close())
        finally:
            self._loop.close()

    def create_database(self, name: str, template: str) -> None:
        self._loop.run_until_complete(self._create(name, template))

    def drop_database(self, name: str) -> None:
        self._loop.run_until_complete(self._drop(name))

    async def _create(self, name: str, template: str) -> None:
        connection = await self._connected()
        # Copying the files takes a third of the time of writing every page to the log. Before 15 it is the only way.
        strategy = " strategy file_copy" if connection.get_server_version().major >= 15 else ""
        await connection.execute(f"create database {_quoted(name)} template {_quoted(template)}{strategy}")

    async def _drop(self, name: str) -> None:
        connection = await self._connected()
        await connection.execute(f"drop database if exists {_quoted(name)} with (force)")

    async def _connected(self) -> asyncpg.Connection[asyncpg.Record]:
        import asyncpg  # noqa: PLC0415 - an extra: only those who talk to PostgreSQL have it

        if self._connection is not None:
            try:
                await self._connection.execute("select 1")
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await self._close()
        if self._connection is None:
            self._connection = await asyncpg.connect(self._url)
        return self._connection

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=5)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
