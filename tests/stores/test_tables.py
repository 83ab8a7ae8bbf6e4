"""Which tables there have to be, and what is said when one is not."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import asyncpg
import pytest

from holdfast.config import StoreConfig
from holdfast.errors import StorageCorrupt
from holdfast.store.postgres import migrate as postgres
from holdfast.store.postgres.connections import Database
from holdfast.store.sqlite import migrate as sqlite
from holdfast.store.tables import made_by

VERSIONS = "holdfast_schema_version"


def test_what_migrations_leave_behind():
    """Made, renamed, dropped, in this order."""
    texts = [
        "CREATE TABLE a (\n);\nCREATE SEQUENCE b;",
        "ALTER TABLE a RENAME TO c;\nDROP SEQUENCE b;\n-- CREATE TABLE d",
    ]

    assert {"c"} == made_by(texts)


def test_all_tables_of_a_file_are_expected(migrated_file):
    """The list is read from the migrations: a new one can't be forgotten."""
    with closing(sqlite3.connect(migrated_file)) as connection:
        there = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if not name.startswith("sqlite_")
        }

    assert there - {VERSIONS} == made_by(migration.text for migration in sqlite.migrations())


async def test_all_tables_of_a_server_are_expected(postgres_url):
    """And the sequence."""
    await Database(postgres_url, StoreConfig(), lambda: 0).migrate()
    connection = await asyncpg.connect(postgres_url)
    rows = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace"
    )
    await connection.close()

    assert {row[0] for row in rows} - {VERSIONS} == made_by(migration.text for migration in postgres.migrations())


def test_a_file_that_has_lost_a_table_is_refused(migrated_file, tmp_path):
    """It can't be made again: what was in it is gone."""
    file = tmp_path / "app.db"
    file.write_bytes(migrated_file.read_bytes())
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE holdfast_timers")

        with pytest.raises(StorageCorrupt, match=r"lacks holdfast_timers.*restore a whole backup"):
            sqlite.missing(connection, str(file))
