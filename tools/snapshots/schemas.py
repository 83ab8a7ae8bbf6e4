"""The tables of both stores after all migrations: columns, keys and indexes.

Two versions of Holdfast run on one database while an installation is upgraded, so a column is a promise.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.cli.main import main

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
_INDEXES = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL ORDER BY name"

_POSTGRES_TABLES = """
SELECT oid, relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname
"""
_POSTGRES_SEQUENCES = """
SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace ORDER BY relname
"""
_POSTGRES_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_POSTGRES_INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = $1 ORDER BY c.relname
"""


def migrate(url: str) -> None:
    with redirect_stdout(StringIO()):
        main(["migrate", url], standalone_mode=False)


def sqlite_schema() -> dict[str, str]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "fresh.db"
        migrate(f"sqlite:///{file}")
        with closing(sqlite3.connect(file)) as connection:
            tables = [name for (name,) in connection.execute(_TABLES)]
            return {"schema_sqlite.txt": _joined(_sqlite_table(connection, name) for name in tables)}


def _sqlite_table(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    yield f"table {name}"
    columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
    for _, column, type_, not_null, default, _ in columns:
        yield f"    {_column(column, type_, not_null, default)}"
    key = [column for _, column, *_, place in sorted(columns, key=lambda row: int(row[-1])) if place]
    yield f"    primary key ({', '.join(key)})"
    for _, index, *_ in (row for row in connection.execute(f"PRAGMA index_list({name})").fetchall() if row[3] == "u"):
        unique = [column for _, _, column in connection.execute(f"PRAGMA index_info({index})")]
        yield f"    unique ({', '.join(unique)})"
    for _, text in connection.execute(_INDEXES, (name,)):
        yield f"    {_index(text, name)}"


def postgres_schema(url: str) -> str:
    """Of a database that is migrated already."""
    return asyncio.run(_postgres_schema(url))


async def _postgres_schema(url: str) -> str:
    import asyncpg  # noqa: PLC0415 - the other snapshots need no driver

    connection = await asyncpg.connect(url)
    try:
        parts = [[f"sequence {row[0]}"] for row in await connection.fetch(_POSTGRES_SEQUENCES)]
        for oid, name in await connection.fetch(_POSTGRES_TABLES):
            columns = [_column(*row) for row in await connection.fetch(_POSTGRES_COLUMNS, oid)]
            indexes = [_index(row[0], name) for row in await connection.fetch(_POSTGRES_INDEXES, oid)]
            parts.append([f"table {name}", *(f"    {line}" for line in (*columns, *indexes))])
        return _joined(parts)
    finally:
        await connection.close()


def _column(name: str, type_: str, not_null: object, default: str | None) -> str:
    return f"{name} {type_}{' not null' if not_null else ''}{f' default {default}' if default is not None else ''}"


def _index(text: str, table: str) -> str:
    """On one line, without what the lines above say."""
    line = " ".join(text.split()).removeprefix("CREATE ").replace("IF NOT EXISTS ", "").replace("public.", "")
    return line.replace(f" ON {table}", "", 1).replace(" USING btree", "", 1)


def _joined(parts: Iterable[Iterable[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts) + "\n"
