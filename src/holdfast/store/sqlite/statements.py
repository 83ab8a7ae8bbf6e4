"""The SQL of this store, read once from the files in `sql/`.

A file holds the statements of one table: `-- name: x`, a sentence of purpose, the statement. What stands between
`/*row*/` and `/*end*/` (or `/*or*/`) may be repeated, once for each row, with commas (or OR) between; values are
always bound. Keys of two columns are searched by a join with VALUES and deleted by OR, because SQLite scans the whole
table for `(a, b) IN (VALUES ...)`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Final

from holdfast.store.rows import Row

MAX_ROWS: Final = 512


class Rows:
    """A statement over any number of rows. Sizes are powers of two, so that few statements have to be prepared."""

    __slots__ = ("_between", "_execution_row", "_row", "_sized", "_tail", "_width")

    def __init__(self, text: str) -> None:
        self._execution_row, rest = text.split("/*row*/")
        self._between = " OR " if "/*or*/" in rest else ", "
        self._row, self._tail = rest.replace("/*or*/", "/*end*/").split("/*end*/")
        self._width = self._row.count("?")
        self._sized: dict[int, str] = {}

    def sql(self, count: int) -> str:
        """The statement for exactly `count` rows; the same object each time, which the driver's cache likes."""
        text = self._sized.get(count)
        if text is None:
            text = self._sized[count] = self._execution_row + self._between.join([self._row] * count) + self._tail
        return text

    def execute(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """Write these rows in few steps: each gives up the GIL, and a busy event loop is slow to give it back."""
        start, count = 0, len(rows)
        while start < count:
            size = min(MAX_ROWS, 1 << ((count - start).bit_length() - 1))
            connection.execute(self.sql(size), list(chain.from_iterable(rows[start : start + size])))
            start += size

    def fetch(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> Iterator[Row]:
        """Read what matches any of these rows."""
        for values, size in self._padded(rows):
            yield from connection.execute(self.sql(size), values).fetchall()

    def delete(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """Delete what matches any of these rows."""
        for values, size in self._padded(rows):
            connection.execute(self.sql(size), values)

    def _padded(self, rows: Sequence[Row]) -> Iterator[tuple[list[Any], int]]:
        """Chunks filled up to a power of two with empty keys, which match nothing."""
        for start in range(0, len(rows), MAX_ROWS):
            chunk = rows[start : start + MAX_ROWS]
            size = 1 << (len(chunk) - 1).bit_length()
            values = list(chain.from_iterable(chunk))
            values.extend([""] * (self._width * (size - len(chunk))))
            yield values, size


@cache
def _table(name: str) -> dict[str, str]:
    text = files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    statements = {}
    for part in text.split("-- name: ")[1:]:
        title, body = part.split("\n", 1)
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        statements[title.strip()] = "\n".join(lines).strip().removesuffix(";")
    return statements


def statement(table: str, name: str) -> str:
    """A statement that is used as it stands."""
    return _table(table)[name]


def rows(table: str, name: str) -> Rows:
    """A statement that takes any number of rows."""
    return Rows(_table(table)[name])
