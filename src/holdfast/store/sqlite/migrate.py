"""Brings a database to this program's schema: numbered files, each applied once, in one transaction.

Two processes may do this at the same time on a new file: the second waits for the first and finds nothing left to do.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from holdfast.errors import SchemaTooNew, StorageCorrupt, StorageError
from holdfast.store.tables import indexes_made_by, lost, made_by

_SCHEMA_VERSION = """
CREATE TABLE IF NOT EXISTS holdfast_schema_version (
    version    INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""


class Migration(NamedTuple):
    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Those this program knows, in order."""
    folder = files(__package__).joinpath("migrations")
    found = (entry for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(
        Migration(int(entry.name[:4]), entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in sorted(found, key=lambda entry: entry.name)
    )


def is_current(connection: sqlite3.Connection, path: str) -> bool:
    """Whether nothing is left to do. Raises if the database is newer than this program, or was made by another one."""
    return not missing(connection, path)


def missing(connection: sqlite3.Connection, path: str) -> list[Migration]:
    """What is left to do."""
    applied = _applied(connection)
    known = {migration.version: migration for migration in migrations()}
    newest = max(applied, default=0)
    if newest > max(known):
        raise SchemaTooNew(
            f"{path} has schema version {newest}, this program knows {max(known)}: upgrade this program",
            path=path,
            found=newest,
            known=max(known),
        )
    for version, checksum in applied.items():
        if version not in known or known[version].checksum != checksum:
            raise StorageError(
                f"{path} was made by another program: its schema version {version} is not the one known here; run the "
                "Holdfast that made it, or name another file",
                path=path,
                version=version,
            )
    _check_tables(connection, path, [known[version].text for version in sorted(applied)])
    return [migration for migration in migrations() if migration.version not in applied]


def apply(connection: sqlite3.Connection, path: str, now: int) -> None:
    """Apply what is missing. The caller holds the write lock (BEGIN IMMEDIATE) and commits."""
    connection.execute(_SCHEMA_VERSION)
    if is_current(connection, path):
        return
    done = _applied(connection)
    for migration in migrations():
        if migration.version in done:
            continue
        for sql in _statements(migration.text):
            connection.execute(sql)
        row = (migration.version, migration.name, migration.checksum, now)
        connection.execute(
            "INSERT INTO holdfast_schema_version (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)", row
        )


def unfit_indexes(connection: sqlite3.Connection) -> dict[str, str]:
    """Indexes that were dropped, by name, and the statement that makes each of them again."""
    done = _applied(connection)
    wanted = indexes_made_by(migration.text for migration in migrations() if migration.version in done)
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    return {name: index.statement(concurrently=False) for name, index in wanted.items() if name not in there}


def _applied(connection: sqlite3.Connection) -> dict[int, str]:
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_schema_version'").fetchone()
    if found is None:
        return {}
    return dict(connection.execute("SELECT version, checksum FROM holdfast_schema_version ORDER BY version").fetchall())


def _check_tables(connection: sqlite3.Connection, path: str, texts: list[str]) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    gone = sorted(made_by(texts) - there)
    if gone:
        raise StorageCorrupt(lost(path, gone), path=path, tables=gone)


def _statements(text: str) -> Iterator[str]:
    # Not executescript: it commits first, and then the lock would be gone.
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
