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
from holdfast.store.tables import indexes_made_by, made_by

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


def test_what_indexes_migrations_leave_behind():
    """With the table that each is on, whatever it was called when the index was made."""
    first = "CREATE INDEX a ON t (x)\n    WHERE y > 0;\nCREATE UNIQUE INDEX b ON t (y);\nCREATE INDEX c ON u (x);"
    second = "DROP INDEX b;\nDROP TABLE u;\nALTER TABLE t RENAME TO v;\n-- CREATE INDEX e ON u (x);"
    third = "CREATE INDEX CONCURRENTLY IF NOT EXISTS d ON u (x);"
    there = indexes_made_by([first, second, third])

    assert {"a", "d"} == there.keys()
    assert "CREATE INDEX a ON v (x) WHERE y > 0" == there["a"].statement(concurrently=False)
    assert "CREATE INDEX CONCURRENTLY d ON u (x)" == there["d"].statement(concurrently=True)


def test_all_indexes_of_a_file_are_expected(migrated_file):
    """But for those that keys have by themselves. What mends a lost one makes it as it was."""
    select = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    with closing(sqlite3.connect(migrated_file)) as connection:
        there = {name: " ".join(sql.split()) for name, sql in connection.execute(select)}
    wanted = indexes_made_by(migration.text for migration in sqlite.migrations())

    assert there == {name: index.statement(concurrently=False) for name, index in wanted.items()}


async def test_all_indexes_of_a_server_are_expected(postgres_url):
    """And each is made as it was by the statement that mends a lost one."""
    await Database(postgres_url, StoreConfig(), lambda: 0).migrate()
    connection = await asyncpg.connect(postgres_url)
    select = (
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT IN "
        "(SELECT conname FROM pg_constraint) ORDER BY 1"
    )
    before = [tuple(row) for row in await connection.fetch(select)]
    wanted = indexes_made_by(migration.text for migration in postgres.migrations())
    for name, index in wanted.items():
        await connection.execute(f"DROP INDEX {name}")
        await connection.execute(index.statement(concurrently=True))
    after = [tuple(row) for row in await connection.fetch(select)]
    await connection.close()

    assert {name for name, _ in before} == wanted.keys()
    assert before == after
