"""The SQL of this store, read once from the files in `sql/`.

A file holds the statements of one table: `-- name: x`, a sentence of purpose, the statement. Many rows are one array
for each column (`unnest`), so that a statement is the same text, and is planned once, however many rows it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from holdfast.store.rows import Row


class Connection(Protocol):
    """What loading, writing and reading need of a connection: asyncpg's own methods, or a stand-in for another
    driver."""

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]: ...

    async def fetchrow(self, query: str, *args: Any) -> Any: ...

    async def fetchval(self, query: str, *args: Any) -> Any: ...

    async def execute(self, query: str, *args: Any) -> Any: ...


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
    return _table(table)[name]


def columns(rows: Iterable[Row], width: int) -> list[Sequence[Any]]:
    """Rows as arrays, one for each column; empty ones when there are no rows."""
    turned: list[Sequence[Any]] = list(zip(*rows, strict=True))
    return turned or [()] * width
