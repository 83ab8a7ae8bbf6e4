"""The plain tables in PostgreSQL: SQL made from their declarations, once, and what a batch loads and writes with it.

Rows are written in the order of their keys, and tables in the order of `store.plain`: two transactions wait for each
other in one direction only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from holdfast.store.codecs import Column
from holdfast.store.plain import TABLES, PlainTable
from holdfast.store.postgres.planning import by_keys
from holdfast.store.postgres.statements import Connection, Raced, columns
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes
from holdfast.store.reads import Row, Select

T = TypeVar("T")
_PAGE: Final = 10_000
SeenRows = Mapping[type[Any], frozenset[Any]]
"""The keys that a transaction has found, of tables where a new one must be free (`on_conflict="retry"`)."""


class Statements:
    """The SQL of one table. Names come from declarations only."""

    __slots__ = ("_by_prefix", "by_key", "delete", "forget", "one", "put", "put_new", "table")

    def __init__(self, table: PlainTable[Any]) -> None:
        spec = table.spec
        self.table = table
        key = ", ".join(spec.key)
        insert = _insert(table)
        self._by_prefix: dict[int, str] = {}
        self.by_key = self.by_prefix(len(spec.key)) + (" FOR NO KEY UPDATE OF t" if spec.locked else "")
        given = " AND ".join(f"{column.name} = ${at}::{column.type}" for at, column in enumerate(table.key, 1))
        self.one = f"SELECT {', '.join(column.name for column in table.columns)} FROM {spec.name} WHERE {given}"
        self.put = _put(table, insert)
        self.put_new = f"WITH made AS ({insert} ON CONFLICT ({key}) DO NOTHING RETURNING 1) SELECT count(*) FROM made"
        given = f"unnest({_arrays(table.key)}) AS n ({key})"
        self.delete = f"DELETE FROM {spec.name} AS t USING {given} WHERE {_same(spec.key)}"
        self.forget = (
            f"WITH n AS MATERIALIZED (SELECT {key} FROM {spec.name} WHERE {spec.age} < $1::bigint "
            f"ORDER BY {spec.age} LIMIT $2::bigint FOR UPDATE SKIP LOCKED) "
            f"DELETE FROM {spec.name} AS t USING n WHERE {_same(spec.key)}"
        )

    def by_prefix(self, width: int) -> str:
        """Rows by the first columns of their keys."""
        found = self._by_prefix.get(width)
        if found is None:
            found = self._by_prefix[width] = _select(self.table, width)
        return found


def _select(table: PlainTable[Any], width: int) -> str:
    spec = table.spec
    own = ", ".join(f"t.{column.name}" for column in table.columns)
    # Rows are locked in this order.
    order = f" ORDER BY {', '.join(f't.{name}' for name in spec.key)}" if spec.locked or width < len(spec.key) else ""
    given = f"unnest({_arrays(table.key[:width])}) AS n ({', '.join(spec.key[:width])})"
    return f"SELECT {own} FROM {given} JOIN {spec.name} AS t ON {_same(spec.key[:width])}{order}"


def _same(names: Iterable[str]) -> str:
    return " AND ".join(f"t.{name} = n.{name}" for name in names)


def _arrays(given: Iterable[Column]) -> str:
    return ", ".join(f"${number}::{column.type}[]" for number, column in enumerate(given, 1))


def _insert(table: PlainTable[Any]) -> str:
    names = ", ".join(column.name for column in table.columns)
    return f"INSERT INTO {table.spec.name} ({names}) SELECT * FROM unnest({_arrays(table.columns)})"


def _put(table: PlainTable[Any], insert: str) -> str:
    spec = table.spec
    if spec.on_conflict == "refuse":
        return insert
    if spec.on_conflict == "keep":
        return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO NOTHING"
    changed = ", ".join(f"{name} = excluded.{name}" for name in table.not_in_key)
    return f"{insert} ON CONFLICT ({', '.join(spec.key)}) DO UPDATE SET {changed}"


def delete_of_executions(name: str) -> str:
    """Rows of these executions."""
    return f"DELETE FROM {name} WHERE execution_id = ANY ($1::text[])"


def delete_page_of_org(name: str, key: tuple[str, ...]) -> str:
    """Some of an org's rows."""
    found_by = ", ".join(key)
    page = f"SELECT {found_by} FROM {name} WHERE org = $1::text LIMIT $2::bigint"
    return f"DELETE FROM {name} WHERE ({found_by}) IN ({page})"


def holds_org(name: str) -> str:
    """Whether there are rows of an org."""
    return f"EXISTS (SELECT 1 FROM {name} WHERE org = $1::text)"


STATEMENTS: Final = {record: Statements(table) for record, table in TABLES.items()}


async def load_rows(connection: Connection, record: type[Any], keys: Iterable[Any]) -> dict[Any, Any]:
    """Those that are there, by key; locked, if the table is."""
    statements = STATEMENTS[record]
    table = statements.table
    found = await connection.fetch(statements.by_key, *columns(table.keys_to_rows(keys), len(table.key)))
    return {table.key_of(row): row for row in map(table.from_row, found)}


async def load_groups(
    connection: Connection, record: type[Any], prefixes: Iterable[tuple[Any, ...]]
) -> dict[tuple[Any, ...], list[Any]]:
    """Rows whose keys begin with one of these, all of the same length: by that, and in the order of their keys."""
    statements = STATEMENTS[record]
    table = statements.table
    asked = table.keys_to_rows(prefixes)
    found: dict[tuple[Any, ...], list[Any]] = {}
    if asked:
        width = len(asked[0])
        for row in await connection.fetch(statements.by_prefix(width), *columns(asked, width)):
            made = table.from_row(row)
            found.setdefault(table.key_of(made)[:width], []).append(made)
    return found


@by_keys
async def select(connection: Connection, query: Select[T]) -> list[T]:
    found = await connection.fetch(query.statement(lambda number, kind: f"${number}::{kind}"), *query.values)
    return [query.table.from_row(row) for row in found]


@by_keys
async def row(connection: Connection, query: Row[T]) -> T | None:
    """Not locked, whatever the table."""
    table = query.table
    found = await connection.fetchrow(STATEMENTS[query.record].one, *table.key_to_row(query.key))
    return query.scoped(table.from_row(found)) if found is not None else None


def seen_rows(loaded: Mapping[type[Any], Mapping[Any, Any]]) -> SeenRows:
    return {record: frozenset(rows) for record, rows in loaded.items() if TABLES[record].spec.on_conflict == "retry"}


async def write_new_rows(connection: Connection, changes: Changes, seen: SeenRows) -> None:
    """Those that must find their keys free: somebody else may have used one meanwhile."""
    for record in TABLES if changes.rows else ():
        new = _new_keys(record, changes, seen)
        if new:
            statements, rows = STATEMENTS[record], changes.rows[record]
            made = await connection.fetchval(
                statements.put_new, *columns([statements.table.to_row(rows[key]) for key in new], 0)
            )
            if made != len(new):
                raise Raced(f"a key of {statements.table.spec.name} has been used")


def _new_keys(record: type[Any], changes: Changes, seen: SeenRows) -> list[Any]:
    if record not in changes.rows or TABLES[record].spec.on_conflict != "retry":
        return []
    known = seen.get(record, ())
    return sorted(key for key, row in changes.rows[record].items() if row is not None and key not in known)


def write_rows(writing: Writing, changes: Changes, seen: SeenRows) -> None:
    """One pass over the tables that the batch has touched, but for what `write_new_rows` writes."""
    for record in TABLES if changes.rows else ():
        rows = changes.rows.get(record)
        if rows:
            statements = STATEMENTS[record]
            table = statements.table
            writing.rows(statements.delete, table.keys_to_rows(key for key, row in rows.items() if row is None))
            written = set(_new_keys(record, changes, seen))
            kept = sorted(key for key, row in rows.items() if row is not None and key not in written)
            writing.rows(statements.put, [table.to_row(rows[key]) for key in kept])
    for record, before in changes.forget_before.items():
        writing.add((STATEMENTS[record].forget, (before, _PAGE)), after=True)
