"""The plain tables in SQLite: SQL made from their declarations, once, and what a batch loads and writes with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.model.records import Table
from holdfast.store.plain import TABLES, PlainTable, owned_by
from holdfast.store.sqlite.statements import Rows


class Statements:
    """The SQL of one table. Names come from declarations only."""

    __slots__ = ("all", "by_key", "delete", "holds", "purge", "put", "table")

    def __init__(self, table: PlainTable[Any]) -> None:
        spec = table.spec
        self.table = table
        names = ", ".join(column.name for column in table.columns)
        key = ", ".join(spec.key)
        self.by_key = Rows(f"SELECT {names} FROM {wanted(spec, len(spec.key))}")
        self.put = Rows(_put(table, names))
        self.delete = Rows(f"DELETE FROM {spec.name} WHERE /*row*/({_equal(spec.key)})/*or*/")
        self.all = f"SELECT {names} FROM {spec.name} ORDER BY {key}"
        self.purge = (
            f"DELETE FROM {spec.name} WHERE ({key}) IN (SELECT {key} FROM {spec.name} WHERE {spec.owner} = ? LIMIT ?)"
        )
        self.holds = f"EXISTS (SELECT 1 FROM {spec.name} WHERE {spec.owner} = ?1)"


def wanted(spec: Table, width: int) -> str:
    """The rows with the first columns of these keys. A join: SQLite scans the table for `(a, b) IN (VALUES ...)`."""
    row = ", ".join("?" * width)
    on = " AND ".join(f"{spec.name}.{name} = wanted.column{at}" for at, name in enumerate(spec.key[:width], 1))
    return f"(VALUES /*row*/({row})/*end*/) AS wanted CROSS JOIN {spec.name} ON {on}"


def _put(table: PlainTable[Any], names: str) -> str:
    spec = table.spec
    row = ", ".join("?" * len(table.columns))
    insert = f"INSERT INTO {spec.name} ({names}) VALUES /*row*/({row})/*end*/"
    if spec.on_conflict == "refuse":
        return insert
    changed = [column.name for column in table.columns if column.name not in spec.key]
    if spec.on_conflict == "keep" or not changed:
        return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO NOTHING"
    excluded = ", ".join(f"{name} = excluded.{name}" for name in changed)
    return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO UPDATE SET {excluded}"


def _equal(names: Iterable[str]) -> str:
    return " AND ".join(f"{name} = ?" for name in names)


STATEMENTS: Final = {record: Statements(table) for record, table in TABLES.items()}
PURGES: Final = tuple(STATEMENTS[table.spec.record].purge for table in owned_by("org"))
HOLDS: Final = " OR ".join(STATEMENTS[table.spec.record].holds for table in owned_by("org"))


def load_rows(connection: sqlite3.Connection, record: type[Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """Those that are there, by key."""
    statements = STATEMENTS[record]
    table = statements.table
    found = statements.by_key.fetch(connection, table.keys_to_rows(keys))
    return {table.spec.key_of(row): row for row in map(table.from_row, found)}


def write_rows(connection: sqlite3.Connection, changes: Mapping[type[Any], Mapping[Any, Any]]) -> None:
    """What each row is from now on; None is no row."""
    for record, rows in changes.items():
        statements = STATEMENTS[record]
        table = statements.table
        gone = [table.key_to_row(key) for key, row in rows.items() if row is None]
        statements.delete.delete(connection, gone)
        statements.put.execute(connection, [table.to_row(row) for row in rows.values() if row is not None])


def all_rows(connection: sqlite3.Connection, record: type[Any]) -> list[Any]:
    """In the order of their keys."""
    statements = STATEMENTS[record]
    return [statements.table.from_row(row) for row in connection.execute(statements.all).fetchall()]
