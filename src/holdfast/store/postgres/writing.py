"""Collects what a transaction writes and sends it in one statement: a round trip costs as much as a hundred rows.

    WITH s0 AS (UPDATE …), s1 AS (INSERT …) DELETE …

The parts of one statement do not see each other's rows, so they must be about different ones. What has to come after
something else in the same table is sent `after` it, by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from holdfast.store.postgres.statements import Connection, columns
from holdfast.store.rows import Row

Piece = tuple[str, Sequence[Any]]
"""A statement and its parameters."""

_PARAMETER: Final = re.compile(r"\$(\d+)")


class Writing:
    __slots__ = ("_later", "_pieces", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._pieces: list[Piece] = []
        self._later: list[Piece] = []

    def add(self, piece: Piece, *, after: bool = False) -> None:
        (self._later if after else self._pieces).append(piece)

    def rows(self, sql: str, rows: Sequence[Row], *, after: bool = False) -> None:
        if rows:
            self.add((sql, columns(rows, 0)), after=after)

    def keys(self, sql: str, keys: Sequence[Any], *, after: bool = False) -> None:
        if keys:
            self.add((sql, (keys,)), after=after)

    async def flush(self) -> None:
        if self._pieces:
            sql = together(tuple(piece[0] for piece in self._pieces))
            await self.connection.execute(sql, *(value for _, values in self._pieces for value in values))
        for sql, values in self._later:
            await self.connection.execute(sql, *values)


@lru_cache(maxsize=4_096)
def together(statements: tuple[str, ...]) -> str:
    """Several statements as one, with their parameters numbered through."""
    count = 0
    texts = []
    for text in statements:
        shift = count
        count += max((int(number) for number in _PARAMETER.findall(text)), default=0)
        texts.append(_PARAMETER.sub(lambda found, shift=shift: f"${int(found[1]) + shift}", text))  # type: ignore[misc]
    *first, last = texts
    if not first:
        return last
    return "WITH " + ",\n".join(f"s{number} AS ({text})" for number, text in enumerate(first)) + "\n" + last
