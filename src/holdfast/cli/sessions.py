"""The workers and definitions a database knows, read as they are: for people who ask why nothing moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.executions import DefinitionRow, WorkerRow

_WORKERS = "SELECT id, org, host, pid, started_at, lease_until_at FROM holdfast_workers WHERE org = {} ORDER BY id"
_DEFINITIONS = (
    "SELECT org, kind, version, build, registered_at FROM holdfast_definitions WHERE org = {} ORDER BY kind, version"
)
_SQLITE, _POSTGRES = "?", "$1"


@dataclass(frozen=True, slots=True)
class Sessions:
    """Workers that were not seen to end, and every workflow that one of them ever had."""

    workers: tuple[WorkerRow, ...] = ()
    definitions: tuple[DefinitionRow, ...] = ()
    alive: tuple[WorkerRow, ...] = field(default=())

    def knows(self, kind: str, version: str) -> bool:
        return any((row.kind, row.version) == (kind, version) for row in self.definitions)

    def worker(self, session: str) -> WorkerRow | None:
        return next((row for row in self.workers if row.id == session), None)


async def read_sessions(url: str, org: str, now: int) -> Sessions:
    rows = await (_postgres(url, org) if url.startswith("postgres") else _sqlite(url, org))
    workers = tuple(
        WorkerRow(id=id_, org=org, host=host, pid=pid, started_at=began, lease_until_at=until)
        for id_, org, host, pid, began, until in rows[0]
    )
    definitions = tuple(
        DefinitionRow(org=org, kind=kind, version=version, build=build, registered_at=at)
        for org, kind, version, build, at in rows[1]
    )
    return Sessions(workers, definitions, tuple(row for row in workers if row.lease_until_at > now))


async def _sqlite(url: str, org: str) -> tuple[Sequence[Any], Sequence[Any]]:
    import sqlite3
    from contextlib import closing

    from holdfast.assembly import SystemClock, database_file
    from holdfast.config import StoreConfig
    from holdfast.store.sqlite.connections import Database

    database = Database(database_file(url), StoreConfig(), SystemClock())
    try:
        with closing(database.open_reader()) as connection:
            ask = [connection.execute(sql.format(_SQLITE), (org,)).fetchall() for sql in (_WORKERS, _DEFINITIONS)]
    except sqlite3.Error as error:
        raise database.explain(error) from error
    return ask[0], ask[1]


async def _postgres(url: str, org: str) -> tuple[Sequence[Any], Sequence[Any]]:
    from holdfast.config import StoreConfig
    from holdfast.store.postgres.connections import Database

    async with Database(url, StoreConfig(), lambda: 0).session() as connection:
        return (
            await connection.fetch(_WORKERS.format(_POSTGRES), org),
            await connection.fetch(_DEFINITIONS.format(_POSTGRES), org),
        )
