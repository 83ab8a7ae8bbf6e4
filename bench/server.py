"""The PostgreSQL server of a benchmark: one of its own with PostgreSQL's default durability, or one that is named.

Owns the databases it has made: those of a named server are dropped at the end, those of its own go with the server.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import asyncpg

from bench.meters import COMMITTED_BYTES
from verification.postgres import LocalPostgres
from verification.postgres_databases import create_database, drop_database

T = TypeVar("T")
_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """Databases by name, each made when it is first asked for. `pid` is that of its own server."""

    def __init__(self, url: str, pid: int | None) -> None:
        self.url = url
        self.pid = pid
        self._prefix = f"holdfast_bench_{uuid4().hex[:8]}"
        self._made: dict[str, str] = {}

    def database(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = create_database(self.url, f"{self._prefix}_{name}")
        return self._made[name]

    def drop_all(self) -> None:
        for name in self._made:
            drop_database(self.url, f"{self._prefix}_{name}")
        self._made.clear()

    def cpu_s(self) -> float:
        """Processor seconds of all processes of its own server that live now."""
        if self.pid is None:
            return 0.0
        return sum(_cpu_s(pid) for pid in (self.pid, *_children_of(self.pid)))


@contextmanager
def serve(directory: Path, url: str | None) -> Iterator[Server]:
    """The server at `url`, else one whose data is in the folder."""
    if url is not None:
        server = Server(url, None)
        try:
            yield server
        finally:
            server.drop_all()
        return
    # The account that a server of root's runs as has to get to its data.
    directory.chmod(0o755)
    with LocalPostgres(directory / "postgres", durable=True) as local:
        yield Server(local.url, local.pid)


def ask(url: str, work: Callable[[Any], Awaitable[T]]) -> T:
    """Do something with a connection, from code that is not async."""
    return asyncio.run(connected(url, work))


async def connected(url: str, work: Callable[[Any], Awaitable[T]]) -> T:
    connection = await asyncpg.connect(url)
    try:
        return await work(connection)
    finally:
        await connection.close()


def commit_seconds(url: str, count: int) -> float:
    """Bare PostgreSQL: one row of 200 bytes per commit, one prepared statement each. Seconds for `count` of them."""
    return ask(url, lambda connection: _commits(connection, count))


async def _commits(connection: Any, count: int) -> float:
    await connection.execute("CREATE TABLE IF NOT EXISTS bare_events (id bigserial PRIMARY KEY, data text NOT NULL)")
    insert = await connection.prepare("INSERT INTO bare_events (data) VALUES ($1)")
    data = "x" * COMMITTED_BYTES
    began = time.perf_counter()
    for _ in range(count):
        await insert.fetch(data)
    return time.perf_counter() - began


async def table_bytes(connection: Any) -> dict[str, tuple[int, int]]:
    """Bytes of each of Holdfast's tables and of its indexes, after dead rows were cleared away."""
    await connection.execute("VACUUM")
    found = await connection.fetch(
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE 'holdfast%' ORDER BY relname"
    )
    return {name.removeprefix("holdfast_"): (table, indexes) for name, table, indexes in found}


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _children_of(parent: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except OSError:
        return []
