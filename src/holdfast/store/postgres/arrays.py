"""Arrays sent as text: a driver that packs them value by value takes twice the time, and most of what the writer sends
is arrays.

`$1::bigint[]` becomes `$1::text::bigint[]`, and the list becomes `{1,2,3}`. Texts are put together and escaped all at
once, whatever they hold. Of an array of `each` (see `statements`) that is one value all the way down, one is sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from holdfast.store.postgres.statements import Connection

_ARRAY: Final = re.compile(r"(\$\d+)::(text|bigint|integer)\[\]")
_SHORTENED: Final = re.compile(r"\$(\d+)::(?:text|bigint|integer)\[\] AS a[1-9]")  # see `statements`
_BETWEEN: Final = "\0"  # no text of a database can hold it


class Packing:
    """A connection for statements with many and long arrays of texts and whole numbers."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def fetch(self, query: str, *args: Any) -> Sequence[Any]:
        return await self._connection.fetch(*_packed(query, args))

    async def fetchrow(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchrow(*_packed(query, args))

    async def fetchval(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchval(*_packed(query, args))

    async def execute(self, query: str, *args: Any) -> Any:
        return await self._connection.execute(*_packed(query, args))


def _packed(query: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    text, whole, shortened = _with_literals(query)
    values = list(args)
    for number in whole:
        values[number] = literal(values[number])
    for number in shortened:
        column = values[number]
        values[number] = literal(column[:1] if column and column.count(column[0]) == len(column) else column)
    return (text, *values)


@lru_cache(maxsize=8_192)
def _with_literals(query: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """The statement that takes literals, and which of its parameters they are: arrays as they are, and those of which
    one value is enough if all are the same."""
    shortened = {int(found[1]) - 1 for found in _SHORTENED.finditer(query)}
    whole = {int(found[1][1:]) - 1 for found in _ARRAY.finditer(query)} - shortened
    return _ARRAY.sub(r"\1::text::\2[]", query), tuple(sorted(whole)), tuple(sorted(shortened))


def literal(values: Sequence[Any]) -> str:
    """An array as PostgreSQL reads it: of texts, of whole numbers, or of either and None."""
    if not values:
        return "{}"
    first = values[0]
    if type(first) is int:
        if values.count(first) == len(values):
            return "{" + f"{first}," * (len(values) - 1) + f"{first}" + "}"
        return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"
    try:
        text = _BETWEEN.join(values)
    except TypeError:
        return "{" + ",".join(map(_one, values)) + "}"
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    if text.count(_BETWEEN) != len(values) - 1:
        return "{" + ",".join(map(_one, values)) + "}"  # the server says what is wrong with it
    return '{"' + text.replace(_BETWEEN, '","') + '"}'


def _one(value: Any) -> str:
    if value is None:
        return "NULL"
    if type(value) is int:
        return str(value)
    text: str = value
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
