"""How reads are planned: rows are found by keys, never by a scan, and not for longer than a statement may take.

A plan is kept as long as its connection, and the tables of queues are empty again and again: one that was made just
then would scan such a table after it has grown. Compiling a page (JIT) costs more than reading it. Both are switched
off, and the time of a statement is limited, for a session or, where a pooler may give the next transaction another
connection, for one transaction at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from holdfast.store.postgres.statements import Connection

P = ParamSpec("P")
T = TypeVar("T")
Read = Callable[Concatenate[Connection, P], Awaitable[T]]

_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
_INDEX_ONLY: Final = "; SET LOCAL enable_seqscan = off; SET LOCAL jit = off"
_END_S: Final = 2.0


def index_only(read: Read[P, T]) -> Read[P, T]:
    """A read in a transaction of its own. Not for a connection that is inside one: it would be ended."""
    return _planned(read, _INDEX_ONLY)


def in_time(read: Read[P, T]) -> Read[P, T]:
    """A read that may take as long as any other, planned as the server likes best. Else as `index_only`."""
    return _planned(read, "")


def _planned(read: Read[P, T], settings: str) -> Read[P, T]:
    @wraps(read)
    async def planned(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(connection, "finds_by_keys", False):
            return await read(connection, *args, **kwargs)
        async with _transaction(connection, settings):
            return await read(connection, *args, **kwargs)

    return planned


@asynccontextmanager
async def _transaction(connection: Connection, settings: str) -> AsyncIterator[None]:
    wait_ms = getattr(connection, "wait_ms", 0)
    wait = f"; SET LOCAL statement_timeout = {wait_ms}" if wait_ms else ""
    await connection.execute(f"{_BEGIN}{settings}{wait}")
    try:
        yield
    finally:
        # Nothing was written. A connection that can't even end its transaction is thrown away by the pool.
        with suppress(Exception):
            async with asyncio.timeout(_END_S):
                await connection.execute("ROLLBACK")
