"""Opens connections: checks the server once, brings its schema up to date, sets time-outs on every one.

No connection has state of its own that a transaction could rely on: behind a pooler the next transaction may run on
another one. Whoever waits for a server that is gone is told after a time, whatever the network says: by a time-out for
every statement, and by the kernel for connections that nobody answers on.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from random import uniform
from typing import Any, Final

import asyncpg

from holdfast.config import StoreConfig
from holdfast.errors import InvalidRequest, SchemaTooOld, ServerReadOnly, StorageBusy, StorageError
from holdfast.store.postgres import checks, migrate, urls
from holdfast.store.postgres.driver_errors import translate
from holdfast.store.postgres.sessions import check_sessions
from holdfast.store.protocol import Clock

_log = logging.getLogger("holdfast.store")

# What the server's own statement_timeout is given to speak first.
_GRACE_S: Final = 5.0
_CACHED_STATEMENTS: Final = 1_024
_ALIVE_IDLE_S: Final = 20
_ALIVE_INTERVAL_S: Final = 5
_ALIVE_PROBES: Final = 4
_UNANSWERED_S: Final = 30
CLOSE_S: Final = 2.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
# Not every system has all of them.
_TCP_OPTIONS: Final = [
    (getattr(socket, name), value)
    for name, value in (
        ("TCP_KEEPIDLE", _ALIVE_IDLE_S),
        ("TCP_KEEPINTVL", _ALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", _ALIVE_PROBES),
        ("TCP_USER_TIMEOUT", _UNANSWERED_S * 1000),
    )
    if hasattr(socket, name)
]


class Unconnected(Exception):
    """No connection could be had. Whatever the reason (a standby that is just being promoted, a password that is just
    being changed, a database that is just being replaced), it may pass: a node that has worked here before waits. Does
    not leave the store: `error` does."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Connection(asyncpg.Connection):
    """A connection of a pool. One that comes back inside a transaction is thrown away.

    `finds_by_keys`: its session was told how to plan and how long a statement may take, so that its transactions need
    not be. `wait_ms` is what they are told otherwise.
    """

    finds_by_keys = False
    wait_ms = 0

    def get_reset_query(self) -> str:
        return ""  # there is nothing to reset: a connection has no state

    async def reset(self, *, timeout: float | None = None) -> None:
        if self.is_in_transaction():
            _log.warning("a connection came back inside a transaction and was closed")
            self.terminate()


class Database:
    """One database on a PostgreSQL server. Nothing is connected before it is asked for."""

    def __init__(self, url: str, config: StoreConfig, clock: Clock) -> None:
        for field in ("connect_timeout_s", "statement_timeout_s"):
            if not getattr(config, field) > 0:
                raise InvalidRequest(f"{field} is more than 0, not {getattr(config, field)!r}", field=field)
        if config.readers < 1:
            raise InvalidRequest(f"readers is at least 1, not {config.readers!r}", field="readers")
        self.place = urls.parse(url)
        self.name = self.place.name
        self.config = config
        self.clock = clock
        self._preparing = asyncio.Lock()
        self._prepared = False

    @property
    def notify(self) -> bool:
        """Whether a session lasts as long as its connection, so that one can listen on it and prepare statements."""
        return self.config.notify and self.place.notify

    async def prepare(self) -> None:
        """Check the server and bring the schema up to date, once."""
        async with self._preparing:
            if self._prepared:
                return
            await self.check()
            if self.config.migrate:
                await self.migrate()
            elif left := await self.pending():
                raise SchemaTooOld(
                    f"the schema of {self.name} lacks {left[0].name}, and this program was told not to change it "
                    "(migrate=False): run `holdfast migrate URL` first",
                    path=self.name,
                    missing=[migration.name for migration in left],
                )
            self._prepared = True

    async def check(self) -> None:
        """Raise if this server can't be used as it is. Waits a while for one that is just starting."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.config.connect_timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                # Nothing is prepared yet: a pooler might give it to somebody else.
                async with self.session(statement_cache_size=0) as connection:
                    if self.notify:
                        await check_sessions(connection, self.session(statement_cache_size=0), self.name)
                    return await checks.check(connection, self.name, self.config)
            except StorageBusy as error:
                if loop.time() >= give_up_at:
                    raise
                if pause_s == _FIRST_PAUSE_S:
                    _log.warning("%s; trying again for %g s", error, self.config.connect_timeout_s)
            await asyncio.sleep(uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter, not a secret
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def pending(self) -> list[migrate.Migration]:
        """The migrations that are missing."""
        async with self.session() as connection:
            return await migrate.missing(connection, self.name)

    async def migrate(self) -> list[migrate.Migration]:
        """Apply what is missing; what was applied."""
        deadline_s = self.config.busy_deadline_s
        with self._explained():
            return await migrate.apply(self._unhurried, self.name, deadline_s=deadline_s, sessions=self.notify)

    async def connect_writer(self) -> asyncpg.Connection[Any]:
        """The connection that writes, on a database whose schema is up to date."""
        await self.prepare()
        return await self._connect()

    async def connect_notifications(self) -> asyncpg.Connection[Any]:
        """The connection that tells other nodes, and hears from them."""
        return await self._connect()

    async def open_pool(self, size: int) -> asyncpg.Pool[Any]:
        """So many connections to read with. Made when they are needed."""
        with self._explained():
            return await asyncpg.create_pool(
                **self._options(),
                min_size=0,
                max_size=size,
                connection_class=Connection,
                init=self._meet_reader,
                setup=_check_outside,
            )

    async def _meet_reader(self, connection: Any) -> None:
        await self._meet(connection)
        connection.wait_ms = int(self.config.statement_timeout_s * 1000)
        if self.notify:
            wait = f"SET statement_timeout = {connection.wait_ms}"
            await connection.execute(f"SET enable_seqscan = off; SET jit = off; {wait}")
            connection.finds_by_keys = True

    @asynccontextmanager
    async def session(self, **options: Any) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection for a moment. What the driver raises inside is explained."""
        connection = await self._connect(**options)
        try:
            with self._explained():
                yield connection
        finally:
            await close_quietly(connection)

    def explain(self, error: BaseException) -> Exception:
        """The error for callers; naming the database is the least that can be done for an unknown one."""
        known = translate(error, self.name)
        return known if known is not None else StorageError(f"{self.name}: {error}", path=self.name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DRIVER_ERRORS as error:
            raise self.explain(error) from error

    @asynccontextmanager
    async def _unhurried(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection whose statements may take long. What the driver raises comes out as it is."""
        connection = await self._connect(command_timeout=None)
        try:
            yield connection
        finally:
            await close_quietly(connection)

    async def _connect(self, **options: Any) -> asyncpg.Connection[Any]:
        with self._explained():
            connection: asyncpg.Connection[Any] = await asyncpg.connect(**(self._options() | options))
        try:
            await self._meet(connection)
        except BaseException:
            await close_quietly(connection)
            raise
        return connection

    async def _meet(self, connection: Any) -> None:
        """Look at every new connection. A standby may have taken the place of the server that was checked at first."""
        if getattr(connection.get_settings(), "in_hot_standby", "off") == "on":
            raise ServerReadOnly(f"{self.name} is a standby: name the primary in the URL", path=self.name)
        _watch_socket(connection)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "dsn": self.place.dsn,
            "timeout": self.config.connect_timeout_s,
            "command_timeout": self.config.statement_timeout_s + _GRACE_S,
            "statement_cache_size": _CACHED_STATEMENTS if self.notify else 0,
            "max_cached_statement_lifetime": 0,
        }
        if self.place.application_name is not None:
            options["server_settings"] = {"application_name": self.place.application_name}
        if self.place.target_session_attrs is not None:
            options["target_session_attrs"] = self.place.target_session_attrs
        return options


async def close_quietly(connection: Any, timeout_s: float = CLOSE_S) -> None:
    """Say goodbye; where that does not work, just go. Also when the caller is cancelled meanwhile."""
    try:
        await connection.close(timeout=timeout_s)
    except Exception:  # noqa: BLE001 - it is to be closed, and that is what terminate does
        connection.terminate()
    except BaseException:
        connection.terminate()
        raise


async def _check_outside(connection: Any) -> None:
    if connection.is_in_transaction():
        raise asyncpg.InterfaceError("connection is closed: it was inside a transaction")


def _watch_socket(connection: Any) -> None:
    """Let the kernel find out that nobody is there any more, and tell."""
    transport = getattr(connection, "_transport", None)
    found = transport.get_extra_info("socket") if transport is not None else None
    if found is None or found.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    with suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _TCP_OPTIONS:
            found.setsockopt(socket.IPPROTO_TCP, option, value)
