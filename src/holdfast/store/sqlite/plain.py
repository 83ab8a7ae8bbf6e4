"""The plain tables in SQLite: SQL made from their declarations, once, and what a batch loads and writes with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from holdfast.model.records import Table
from holdfast.store.plain import TABLES, PlainTable
from holdfast.store.protocol import Changes
from holdfast.store.reads import Row, Select
from holdfast.store.sqlite.statements import Rows

T = TypeVar("T")
_PAGE: Final = 10_000


class Statements:
    """The SQL of one table. Names come from declarations only."""

    __slots__ = ("_by_prefix", "_select", "by_key", "delete", "forget", "put", "table")

    def __init__(self, table: PlainTable[Any]) -> None:
        spec = table.spec
        self.table = table
        names = ", ".join(column.name for column in table.columns)
        key = ", ".join(spec.key)
        self._select = f"SELECT {names} FROM"
        self._by_prefix: dict[int, Rows] = {}
        self.by_key = self.by_prefix(len(spec.key))
        self.put = Rows(_put(table, names))
        self.delete = Rows(f"DELETE FROM {spec.name} WHERE /*row*/({_equal(spec.key)})/*or*/")
        self.forget = (
            f"DELETE FROM {spec.name} WHERE ({key}) IN "
            f"(SELECT {key} FROM {spec.name} WHERE {spec.age} < ? ORDER BY {spec.age} LIMIT ?)"
        )

    def by_prefix(self, width: int) -> Rows:
        """Rows by the first columns of their keys."""
        found = self._by_prefix.get(width)
        if found is None:
            spec = self.table.spec
            order = f" ORDER BY {', '.join(spec.key)}" if width < len(spec.key) else ""
            found = self._by_prefix[width] = Rows(f"{self._select} {_wanted(spec, width)}{order}")
        return found


def _wanted(spec: Table, width: int) -> str:
    """A join: SQLite scans the table for `(a, b) IN (VALUES ...)`."""
    row = ", ".join("?" * width)
    on = " AND ".join(f"{spec.name}.{name} = wanted.column{at}" for at, name in enumerate(spec.key[:width], 1))
    return f"(VALUES /*row*/({row})/*end*/) AS wanted CROSS JOIN {spec.name} ON {on}"


def _put(table: PlainTable[Any], names: str) -> str:
    spec = table.spec
    row = ", ".join("?" * len(table.columns))
    insert = f"INSERT INTO {spec.name} ({names}) VALUES /*row*/({row})/*end*/"
    if spec.on_conflict == "refuse":
        return insert
    if spec.on_conflict == "keep":
        return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO NOTHING"
    changed = ", ".join(f"{name} = excluded.{name}" for name in table.not_in_key)
    return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO UPDATE SET {changed}"


def _equal(names: Iterable[str]) -> str:
    return " AND ".join(f"{name} = ?" for name in names)


def delete_of_executions(name: str) -> Rows:
    """Rows of these executions."""
    return Rows(f"DELETE FROM {name} WHERE execution_id IN (VALUES /*row*/(?)/*end*/)")


def delete_page_of_org(name: str, key: tuple[str, ...]) -> str:
    """Some of an org's rows."""
    found_by = ", ".join(key)
    page = f"SELECT {found_by} FROM {name} WHERE org = ? LIMIT ?"
    return f"DELETE FROM {name} WHERE ({found_by}) IN ({page})"


def holds_org(name: str) -> str:
    """Whether there are rows of an org."""
    return f"EXISTS (SELECT 1 FROM {name} WHERE org = ?1)"


STATEMENTS: Final = {record: Statements(table) for record, table in TABLES.items()}


def load_rows(connection: sqlite3.Connection, record: type[Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """Those that are there, by key."""
    statements = STATEMENTS[record]
    table = statements.table
    found = statements.by_key.fetch(connection, table.keys_to_rows(keys))
    return {table.key_of(row): row for row in map(table.from_row, found)}


def load_groups(
    connection: sqlite3.Connection, record: type[Any], prefixes: Iterable[tuple[Any, ...]]
) -> dict[tuple[Any, ...], list[Any]]:
    """Rows whose keys begin with one of these, all of the same length: by that, and in the order of their keys."""
    statements = STATEMENTS[record]
    table = statements.table
    asked = table.keys_to_rows(prefixes)
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in statements.by_prefix(len(asked[0])).fetch(connection, asked) if asked else ():
        made = table.from_row(row)
        found.setdefault(table.key_of(made)[: len(asked[0])], []).append(made)
    return found


def select(connection: sqlite3.Connection, query: Select[T]) -> list[T]:
    found = connection.execute(query.statement(lambda _, __: "?"), query.values).fetchall()
    return [query.table.from_row(row) for row in found]


def row(connection: sqlite3.Connection, query: Row[T]) -> T | None:
    return query.scoped(load_rows(connection, query.record, [query.key]).get(query.key))


def write_rows(connection: sqlite3.Connection, changes: Changes) -> None:
    """One pass over the tables that the batch has touched."""
    for record, rows in changes.rows.items():
        statements = STATEMENTS[record]
        table = statements.table
        statements.delete.delete(connection, [table.key_to_row(key) for key, row in rows.items() if row is None])
        statements.put.execute(connection, [table.to_row(row) for row in rows.values() if row is not None])
    for record, before in changes.forget_before.items():
        connection.execute(STATEMENTS[record].forget, (before, _PAGE))
