"""The doctor's look at the database itself: reachable, schema, disk, hints, secret."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from holdfast.cli.doctor.examination import Finding, Level
from holdfast.cli.target import check_file, shown_url
from holdfast.config import StoreConfig
from holdfast.errors import HoldfastError
from holdfast.store.urls import kind_of

MEGABYTE = 1024 * 1024
LITTLE_SPACE = 500 * MEGABYTE
LARGE_WAL = 256 * MEGABYTE
SAFE_WAL = (3, 51, 3)
HINT_S = 2.0


async def check_database(url: str) -> list[Finding]:
    try:
        check_file(url)
        return await (_postgres if kind_of(url) == "postgresql" else _sqlite)(url)
    except HoldfastError as error:
        return [Finding(Level.BAD, f"{shown_url(url)}: {error.message} [{error.code}]")]


def _schema(name: str, missing: list[str], url: str) -> Finding:
    if not missing:
        return Finding(Level.OK, f"the schema of {name} is up to date")
    return Finding(Level.BAD, f"the schema of {name} lacks {', '.join(missing)}", f"holdfast migrate {shown_url(url)}")


def _indexes(name: str, unfit: Mapping[str, str]) -> list[Finding]:
    """Nothing is wrong without them, but all of it is slow, and ever slower."""
    if not unfit:
        return []
    what = f"{name} lacks {len(unfit)} of its indexes, dropped or not made to their end: {', '.join(sorted(unfit))}"
    return [Finding(Level.BAD, what, "; ".join(unfit[index] for index in sorted(unfit)), "index_missing")]


async def _sqlite(url: str) -> list[Finding]:
    from contextlib import closing

    from holdfast.assembly import SystemClock, database_file
    from holdfast.store.sqlite.connections import Database
    from holdfast.store.sqlite.migrate import missing, unfit_indexes
    from holdfast.store.sqlite.open_files import network_file_system

    path = database_file(url)
    assert path is not None, "checked before"
    database = Database(path, StoreConfig(), SystemClock())
    try:
        with closing(database.open_reader()) as connection:
            left = [migration.name for migration in missing(connection, database.name)]
            unfit = unfit_indexes(connection)
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise database.explain(error) from error
    found = [
        Finding(Level.OK, f"{path} can be read: SQLite {sqlite3.sqlite_version}, {_size(path)}"),
        _schema(str(path), left, url),
        *_indexes(str(path), unfit),
    ]
    if damage != "ok":
        found.append(Finding(Level.BAD, f"{path} is damaged: {damage}", "stop, copy the files, restore a backup"))
    remote = network_file_system(path)
    if remote is not None:
        found.append(Finding(Level.BAD, f"{path} lies on a network file system ({remote})", "put it on a local disk"))
    return [*found, *_room(path), *_secret(path)]


def _size(path: Path) -> str:
    return f"{path.stat().st_size / MEGABYTE:.1f} MB"


def _room(path: Path) -> list[Finding]:
    found = []
    free = shutil.disk_usage(path.resolve().parent).free
    if free < LITTLE_SPACE:
        found.append(
            Finding(
                Level.BAD, f"only {free // MEGABYTE} MB are free where {path} is", "make room: writes will be refused"
            )
        )
    log = Path(f"{path}-wal")
    with suppress(FileNotFoundError):
        if log.stat().st_size > LARGE_WAL:
            found.append(
                Finding(
                    Level.NOTE,
                    f"the write-ahead log {log} has {_size(log)}: something reads for very long, or nothing runs",
                    "close programs that keep a read transaction open",
                )
            )
    if sqlite3.sqlite_version_info < SAFE_WAL:
        found.append(
            Finding(
                Level.NOTE,
                f"SQLite {sqlite3.sqlite_version} can damage a file that other programs checkpoint meanwhile; Holdfast "
                "itself avoids that",
                "open the file with other programs only while nothing runs, or use SQLite 3.51.3 or newer",
            )
        )
    return found


def _secret(path: Path) -> list[Finding]:
    key = path.with_name(f"{path.name}.key")
    with suppress(FileNotFoundError):
        if key.stat().st_mode & 0o077:
            return [
                Finding(Level.BAD, f"{key} can be read by others, who could settle every promise", f"chmod 600 {key}")
            ]
    return []


async def _postgres(url: str) -> list[Finding]:
    from holdfast.store.postgres.checks import unfit_indexes
    from holdfast.store.postgres.connections import Database
    from holdfast.store.postgres.durability import durability_risks

    database = Database(url, StoreConfig(synchronous="normal"), lambda: 0)  # what may be lost is a finding, not a log
    await database.check()
    async with database.session() as connection:
        version = connection.get_settings().server_version.partition(" ")[0]
        may_lose = await durability_risks(connection, await connection.fetchval("SHOW synchronous_commit"))
    pending = [migration.name for migration in await database.pending()]
    unfit = {}
    if not pending:
        async with database.session() as connection:
            unfit = await unfit_indexes(connection)
    found = [
        Finding(Level.OK, f"{database.name} answers: PostgreSQL {version}"),
        _schema(database.name, pending, url),
        *_indexes(database.name, unfit),
        *(
            Finding(Level.NOTE, f"{database.name} may lose answered calls: {risk.what}", risk.remedy, risk.code)
            for risk in may_lose
        ),
    ]
    return [*found, await _notifications(database)]


async def _notifications(database: object) -> Finding:
    """Whether a NOTIFY of one connection reaches another: not so through a transaction pooler."""
    from holdfast.store.postgres.connections import Database

    assert isinstance(database, Database)
    if not database.notify:
        return Finding(Level.NOTE, "hints are turned off in the URL: other processes are noticed by polling")
    channel = f"holdfast_doctor_{uuid4().hex[:8]}"
    heard = asyncio.Event()
    async with database.session() as listening, database.session() as telling:
        await listening.add_listener(channel, lambda *_: heard.set())
        await telling.execute(f"NOTIFY {channel}")
        with suppress(TimeoutError):
            await asyncio.wait_for(heard.wait(), HINT_S)
    if heard.is_set():
        return Finding(Level.OK, "hints (LISTEN/NOTIFY) arrive")
    return Finding(
        Level.NOTE,
        "hints (LISTEN/NOTIFY) do not arrive: there is a transaction pooler between, and all goes by polling",
        "connect to the server itself, or add ?notify=off to the URL",
    )
