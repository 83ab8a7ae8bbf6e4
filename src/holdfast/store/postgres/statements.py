"""The SQL of this store, read once from the files in `sql/`.

A file holds the statements of one table: `-- name: x`, a sentence of purpose, the statement. Many rows are one array
for each column (`unnest`), so that a statement is the same text, and is planned once, however many rows it takes.

`each($1::text[], …) AS n (id, …)` is an `unnest` for what is written most: an array of one value stands for that value
in every row, since most columns of a batch are the same all the way down (`arrays.Packing` sends them so). The first
array is always whole: it says how many rows there are. No value may be NULL. An array of long texts is `$6::_text`,
PostgreSQL's own name of `text[]`: it is sent by the driver, value by value, and need not be parsed by the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

from holdfast.store.rows import Row

_EACH: Final = re.compile(r"\beach\(([^()]*)\)\s+AS (\w+) \(([^()]*)\)")


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
        statements[title.strip()] = spelled_out("\n".join(lines).strip().removesuffix(";"))
    return statements


def spelled_out(sql: str) -> str:
    """With every `each` as PostgreSQL knows it."""
    return _EACH.sub(_side_by_side, sql)


def _side_by_side(each: re.Match[str]) -> str:
    """The arrays are read once (OFFSET 0), with the first value of each, and walked together in a list of results: as
    functions in FROM each would be copied to a table of its own first."""
    arrays, names = each[1].split(","), each[3].split(",")
    numbers = range(1, len(arrays))
    given = ", ".join(f"{array.strip()} AS a{number}" for number, array in enumerate(arrays))
    first = "".join(f", a{number}[1] AS f{number}" for number in numbers)
    values = ", ".join(f"unnest(a{number}) AS v{number}" for number in range(len(arrays)))
    columns = "".join(f", coalesce(v{number}, f{number}) AS {names[number].strip()}" for number in numbers)
    # Everything comes from our own files, hence no S608.
    read = f"(SELECT *{first} FROM (SELECT {given} OFFSET 0) AS g OFFSET 0) AS a"  # noqa: S608
    return f"(SELECT v0 AS {names[0]}{columns} FROM (SELECT *, {values} FROM {read}) AS r) AS {each[2]}"  # noqa: S608


def statement(table: str, name: str) -> str:
    return _table(table)[name]


def columns(rows: Iterable[Row], width: int) -> list[Sequence[Any]]:
    """Rows as arrays, one for each column; empty ones when there are no rows."""
    state_changed: list[Sequence[Any]] = list(zip(*rows, strict=True))
    return state_changed or [()] * width
