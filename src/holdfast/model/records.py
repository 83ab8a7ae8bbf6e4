"""Records that are rows of a plain table, and say so themselves, once for all stores.

    @table("holdfast_pauses", key=("org", "what", "name"), owner="org")
    class Pause(msgspec.Struct, frozen=True, kw_only=True): ...

The fields are the columns, in this order. A plain table is loaded by its key, or by the beginning of it, and written
whole: the unit of work puts a record, or drops a key. Everything else follows from the declaration: SQL, row codec,
removal with its owner, the table of the store in memory, the cases of the conformance suite (see `store.plain`).

What is claimed, found by what is due, or written in parts is no plain table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar

import msgspec

R = TypeVar("R", bound=msgspec.Struct)
OnConflict = Literal["replace", "keep", "refuse", "retry"]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """`owner` is the column that names the org, or the execution, whose removal takes the row along.

    `on_conflict` says what happens when a record is put whose key is taken: it replaces the row, the row is kept, or
    the transaction is refused. With `retry` a key that was not there when the batch was loaded must still be free, or
    the batch is loaded and decided again: two nodes can't both be the first.

    `locked` rows are locked when they are loaded, in a database that knows such locks: a batch that loads one may
    change it. `age` is the column with the instant that rows are forgotten by. `columns` are the names of columns that
    are not called like their fields.
    """

    name: str
    record: type[Any]
    key: tuple[str, ...]
    owner: Literal["org", "execution_id"] | None
    on_conflict: OnConflict
    locked: bool
    age: str | None
    columns: Mapping[str, str]
    key_of: Callable[[Any], Any]
    """The key of a record: the value of its one field, or a tuple."""


_TABLES: Final[dict[type[Any], Table]] = {}


def table(
    name: str,
    *,
    key: tuple[str, ...],
    owner: Literal["org", "execution_id"] | None = None,
    on_conflict: OnConflict = "replace",
    locked: bool = False,
    age: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Callable[[type[R]], type[R]]:
    """Declare that a record is a row of this table."""

    def declare(record: type[R]) -> type[R]:
        _TABLES[record] = Table(
            name=name,
            record=record,
            key=key,
            owner=owner,
            on_conflict=on_conflict,
            locked=locked,
            age=age,
            columns=columns or {},
            key_of=attrgetter(*key),
        )
        return record

    return declare


def table_of(record: type[Any]) -> Table:
    return _TABLES[record]


def declared_tables() -> tuple[Table, ...]:
    """Those of all modules that were imported."""
    return tuple(_TABLES.values())
