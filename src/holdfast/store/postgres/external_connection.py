"""The application's connection, of whatever driver, as loading and writing know one (`statements.Connection`).

Owns: what tells the drivers apart. A connection of asyncpg is used as it is. psycopg's are used through raw cursors,
which take PostgreSQL's own `$1`; their rows are tuples, whatever the application has set. The plain one of psycopg does
everything at once, in the thread that calls: its methods are awaited, but never wait.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, Final, Protocol

import asyncpg

from holdfast.errors import InvalidRequest
from holdfast.store.postgres.statements import Connection

FIELD: Final = "using"

_BEGIN_FIRST: Final = (
    "the connection has no open transaction to join: begin one first (asyncpg: async with connection.transaction(); "
    "psycopg: with connection.transaction(), or autocommit off; Django: transaction.atomic(); SQLAlchemy on asyncpg "
    "begins with the first statement)"
)
_FAILED: Final = "the connection's transaction has failed already, and nothing can be done in it: roll it back first"


class ExternalConnection(Connection, Protocol):
    """An open connection of the application's, for the time of one call."""

    driver_errors: tuple[type[Exception], ...]

    def begin(self) -> bool:
        """Check that there is a transaction to join; True if the driver begins one with the next statement."""
        ...

    async def roll_back(self) -> None:
        """End the transaction that the driver has begun for us."""
        ...


def no_transaction() -> InvalidRequest:
    return InvalidRequest(_BEGIN_FIRST, field=FIELD)


def failed_transaction() -> InvalidRequest:
    return InvalidRequest(_FAILED, field=FIELD)


def unusable(reason: object) -> InvalidRequest:
    return InvalidRequest(f"the connection can't be used here: {reason}", field=FIELD)


def wrap_connection(connection: Any) -> ExternalConnection:
    """Raises InvalidRequest for what is no open connection of a driver that we know."""
    if isinstance(connection, asyncpg.Connection | asyncpg.pool.PoolConnectionProxy):
        return AsyncpgExternal(connection)
    psycopg = sys.modules.get("psycopg")  # whoever has a connection of it has imported it
    if psycopg is not None and isinstance(connection, psycopg.Connection):
        return PsycopgExternal(connection, psycopg)
    if psycopg is not None and isinstance(connection, psycopg.AsyncConnection):
        return AsyncPsycopgExternal(connection, psycopg)
    raise InvalidRequest(
        f"using= takes the open connection of asyncpg or psycopg (version 3), not {type(connection).__name__}: "
        "frameworks give it as the driver's connection (Django: connection.connection; SQLAlchemy: "
        "session.connection().connection.driver_connection)",
        field=FIELD,
    )


class AsyncpgExternal:
    """A connection of asyncpg, or one that a pool of it has lent."""

    driver_errors: tuple[type[Exception], ...] = (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
    )

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def begin(self) -> bool:
        try:
            closed, inside = self._connection.is_closed(), self._connection.is_in_transaction()
            loop = getattr(self._connection, "_loop", None)
        except asyncpg.InterfaceError as error:  # given back to its pool
            raise unusable(error) from error
        if closed:
            raise unusable("it is closed")
        if loop is not None and loop is not asyncio.get_running_loop():
            raise unusable("it belongs to another event loop")
        if not inside:
            raise no_transaction()
        return False

    async def roll_back(self) -> None:
        raise AssertionError("asyncpg begins no transaction by itself")

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        rows: Sequence[Any] = await self._connection.fetch(query, *args)
        return rows

    async def fetchrow(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchrow(query, *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchval(query, *args)

    async def execute(self, query: str, *args: Any) -> Any:
        return await self._connection.execute(query, *args)


class _OfPsycopg:
    """What both kinds of psycopg's connections have in common."""

    def __init__(self, connection: Any, psycopg: Any) -> None:
        self._connection = connection
        self._psycopg = psycopg
        self.driver_errors: tuple[type[Exception], ...] = (psycopg.Error, OSError)

    def begin(self) -> bool:
        connection, status = self._connection, self._psycopg.pq.TransactionStatus
        if connection.closed:
            raise unusable("it is closed")
        if connection.pgconn.pipeline_status:
            raise unusable("it is in pipeline mode, where answers come later")
        now = connection.info.transaction_status
        if now == status.INERROR:
            raise failed_transaction()
        if now != status.IDLE:
            return False
        if connection.autocommit:
            raise no_transaction()
        return True

    async def fetchrow(self, query: str, *args: Any) -> Any:
        rows = await self.fetch(query, *args)
        return rows[0] if rows else None

    async def fetchval(self, query: str, *args: Any) -> Any:
        rows = await self.fetch(query, *args)
        return rows[0][0] if rows else None

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        raise NotImplementedError


class PsycopgExternal(_OfPsycopg):
    """A plain connection of psycopg. Nothing here ever waits in a way that an event loop would notice."""

    async def roll_back(self) -> None:
        self._connection.rollback()

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        with self._cursor() as cursor:
            rows: Sequence[Any] = cursor.execute(query, _adapted(args)).fetchall()
            return rows

    async def execute(self, query: str, *args: Any) -> Any:
        with self._cursor() as cursor:
            cursor.execute(query, _adapted(args))

    def _cursor(self) -> Any:
        return self._psycopg.RawCursor(self._connection, row_factory=self._psycopg.rows.tuple_row)


class AsyncPsycopgExternal(_OfPsycopg):
    """An async connection of psycopg."""

    async def roll_back(self) -> None:
        await self._connection.rollback()

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        async with self._cursor() as cursor:
            await cursor.execute(query, _adapted(args))
            rows: Sequence[Any] = await cursor.fetchall()
            return rows

    async def execute(self, query: str, *args: Any) -> Any:
        async with self._cursor() as cursor:
            await cursor.execute(query, _adapted(args))

    def _cursor(self) -> Any:
        return self._psycopg.AsyncRawCursor(self._connection, row_factory=self._psycopg.rows.tuple_row)


def _adapted(args: Sequence[Any]) -> list[Any] | None:
    """An array is a list for psycopg; a tuple would be a row. Without parameters several statements may go at once."""
    return [_array(value) if isinstance(value, list | tuple) else value for value in args] or None


def _array(values: Sequence[Any]) -> list[Any]:
    kinds = {type(value) for value in values}
    if float in kinds and int in kinds:  # one array, one type
        return [float(value) if type(value) is int else value for value in values]
    return list(values)
