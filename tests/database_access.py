"""Looks into a test's database from outside, and changes it by hand: past the store, on SQLite and on PostgreSQL alike.

SQL is what both understand; parameters are written as `?`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import psycopg

from holdfast.assembly import database_file

Row = tuple[Any, ...]


class Reader:
    """A connection that stays open, for those who look often."""

    def __init__(self, url: str) -> None:
        self._connection = _connect(url)
        self._url = url

    def rows(self, sql: str, *arguments: object) -> list[Row]:
        return list(map(tuple, self._connection.execute(_written_for(self._url, sql), arguments).fetchall()))

    def one(self, sql: str, *arguments: object) -> Any:
        """The first column of the first row."""
        return self.rows(sql, *arguments)[0][0]

    def close(self) -> None:
        self._connection.close()


def rows(url: str, sql: str, *arguments: object) -> list[Row]:
    with closing(Reader(url)) as reader:
        return reader.rows(sql, *arguments)


async def change(url: str, sql: str, *arguments: object) -> int:
    """Run one statement by hand; how many rows it touched. In a thread: it may wait for a lock, and whoever has that
    may need the loop to go on."""
    return await asyncio.to_thread(_change, url, sql, arguments)


def _change(url: str, sql: str, arguments: Sequence[object]) -> int:
    with closing(_connect(url)) as connection:
        return int(connection.execute(_written_for(url, sql), arguments).rowcount)


def application(url: str) -> Any:
    """A connection as an application has one: with transactions that it commits or rolls back."""
    return sqlite3.connect(database_file(url) or ":memory:", timeout=5) if _is_sqlite(url) else psycopg.connect(url)


def tables(url: str) -> list[str]:
    """All tables of the engine."""
    where = (
        "sqlite_master WHERE type = 'table'"
        if _is_sqlite(url)
        else "(SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public') AS found WHERE true"
    )
    return [name for (name,) in rows(url, f"SELECT name FROM {where} ORDER BY name")]


def columns(url: str, table: str) -> list[str]:
    with closing(_connect(url)) as connection:
        return [column[0] for column in connection.execute(f"SELECT * FROM {table} WHERE false").description]


def dump(url: str) -> str:
    """All rows of all tables, as text."""
    return repr([rows(url, f"SELECT * FROM {name}") for name in tables(url)])


def contents(url: str) -> bytes:
    """Everything that is stored: on SQLite the files as they are, on PostgreSQL the rows."""
    file = database_file(url) if _is_sqlite(url) else None
    if file is not None:
        return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
    return dump(url).encode()


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[Lock]:
    """Nobody else can write meanwhile: a process suspended in the middle of a commit would block all others."""
    with closing(_connect(url)) as connection:
        if _is_sqlite(url):
            connection.execute("BEGIN IMMEDIATE")
        else:
            await _lock_all(connection, ", ".join(tables(url)))
        yield Lock(url)
        connection.execute("ROLLBACK")


class Lock:
    """A database in which nobody else can write."""

    def __init__(self, url: str) -> None:
        self._url = url

    def turn_away(self) -> None:
        """End the transactions that wait for the lock. On PostgreSQL they would get it even if their process stands
        still, and keep it until the server loses patience; on SQLite nobody waits who does not run."""
        if not _is_sqlite(self._url):
            rows(self._url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")


async def _lock_all(connection: Any, names: str) -> None:
    # Never waiting: one who holds some of the locks and waits for others would sooner or later meet another such.
    while True:
        try:
            connection.execute("BEGIN")
            connection.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE NOWAIT")
        except psycopg.errors.LockNotAvailable:
            connection.execute("ROLLBACK")
            await asyncio.sleep(0.001)
        else:
            return


def _is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:")


def _connect(url: str) -> Any:
    """What is run on it is committed at once."""
    if _is_sqlite(url):
        return sqlite3.connect(database_file(url) or ":memory:", timeout=10, isolation_level=None)
    return psycopg.connect(url, autocommit=True)


def _written_for(url: str, sql: str) -> str:
    return sql if _is_sqlite(url) else sql.replace("?", "%s")
