"""The plain tables in PostgreSQL: SQL made from their declarations, once, and what a batch loads and writes with it.

Rows are written in the order of their keys, and tables in the order of `store.plain`: two transactions wait for each
other in one direction only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.store.plain import TABLES, Column, PlainTable, owned_by
from holdfast.store.postgres.statements import Connection, columns
from holdfast.store.postgres.writing import Writing


class Statements:
    """The SQL of one table. Names come from declarations only."""

    __slots__ = ("all", "by_key", "delete", "holds", "purge", "put", "table")

    def __init__(self, table: PlainTable[Any]) -> None:
        spec = table.spec
        self.table = table
        names = ", ".join(column.name for column in table.columns)
        key = ", ".join(spec.key)
        own_key = ", ".join(f"t.{name}" for name in spec.key)
        self.by_key = f"SELECT {_own(table.columns)} FROM {wanted(table, len(spec.key))}"
        if spec.locked:
            self.by_key += f" ORDER BY {own_key} FOR NO KEY UPDATE OF t"
        self.put = _put(table, names)
        self.delete = (
            f"DELETE FROM {spec.name} AS t USING unnest({_arrays(table.key)}) AS n ({key}) WHERE {_same(spec.key)}"
        )
        self.all = f"SELECT {names} FROM {spec.name} ORDER BY {key}"
        self.purge = (
            f"DELETE FROM {spec.name} WHERE ({key}) IN (SELECT {key} FROM {spec.name} "
            f"WHERE {spec.owner} = $1::text LIMIT $2::bigint)"
        )
        self.holds = f"EXISTS (SELECT 1 FROM {spec.name} WHERE {spec.owner} = $1::text)"


def wanted(table: PlainTable[Any], width: int) -> str:
    """The rows with the first columns of these keys."""
    key, names = table.key[:width], table.spec.key[:width]
    return f"unnest({_arrays(key)}) AS n ({', '.join(names)}) JOIN {table.spec.name} AS t ON {_same(names)}"


def _own(own: Iterable[Column]) -> str:
    return ", ".join(f"t.{column.name}" for column in own)


def _same(names: Iterable[str]) -> str:
    return " AND ".join(f"t.{name} = n.{name}" for name in names)


def _arrays(given: Iterable[Column]) -> str:
    return ", ".join(f"${number}::{column.type}[]" for number, column in enumerate(given, 1))


def _put(table: PlainTable[Any], names: str) -> str:
    spec = table.spec
    insert = f"INSERT INTO {spec.name} ({names}) SELECT * FROM unnest({_arrays(table.columns)})"
    if spec.on_conflict == "refuse":
        return insert
    changed = [column.name for column in table.columns if column.name not in spec.key]
    if spec.on_conflict == "keep" or not changed:
        return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO NOTHING"
    excluded = ", ".join(f"{name} = excluded.{name}" for name in changed)
    return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO UPDATE SET {excluded}"


STATEMENTS: Final = {record: Statements(table) for record, table in TABLES.items()}
PURGES: Final = tuple(STATEMENTS[table.spec.record].purge for table in owned_by("org"))
HOLDS: Final = " OR ".join(STATEMENTS[table.spec.record].holds for table in owned_by("org"))


async def load_rows(connection: Connection, record: type[Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """Those that are there, by key; locked, if the table is."""
    statements = STATEMENTS[record]
    table = statements.table
    found = await connection.fetch(statements.by_key, *columns(table.keys_to_rows(keys), len(table.key)))
    return {table.spec.key_of(row): row for row in map(table.from_row, found)}


def write_rows(writing: Writing, changes: Mapping[type[Any], Mapping[Any, Any]]) -> None:
    """What each row is from now on; None is no row."""
    for record, statements in STATEMENTS.items():
        rows = changes.get(record)
        if rows:
            table = statements.table
            gone = table.keys_to_rows(key for key, row in rows.items() if row is None)
            writing.rows(statements.delete, gone)
            kept = sorted(key for key, row in rows.items() if row is not None)
            writing.rows(statements.put, [table.to_row(rows[key]) for key in kept])


async def all_rows(connection: Connection, record: type[Any]) -> list[Any]:
    """In the order of their keys."""
    statements = STATEMENTS[record]
    return [statements.table.from_row(row) for row in await connection.fetch(statements.all)]
