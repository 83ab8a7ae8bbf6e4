"""Records to rows and back, by the types of their fields: columns in the order of the fields.

Enums are written as their values, payloads and structs as JSON text, everything else as it is. None stays None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw, structs

from holdfast.store.rows import Row

T = TypeVar("T")
Convert = Callable[[Any], Any]

_SQL_TYPES: Final[dict[Any, str]] = {
    str: "text",
    int: "bigint",
    float: "double precision",
    bytes: "bytea",
}
_encode = msgspec.json.Encoder().encode


class Column(msgspec.Struct, frozen=True):
    """`type` is PostgreSQL's word for it. None is never converted."""

    name: str
    type: str
    encode: Convert | None = None
    decode: Convert | None = None


class Codec(Generic[T]):
    """The columns of a record. `whole`: a statement takes truth as 1 or 0."""

    __slots__ = ("_decoders", "_encoders", "_fields", "_record", "columns")

    def __init__(self, record: type[T], names: Mapping[str, str] | None = None, *, whole: bool = False) -> None:
        fields = structs.fields(cast(Any, record))
        named = names or {}
        self._record: Any = record
        self.columns = tuple(_column(named.get(field.name, field.name), field.type, whole=whole) for field in fields)
        self._fields = tuple(field.name for field in fields)
        self._encoders = [(at, column.encode) for at, column in enumerate(self.columns) if column.encode is not None]
        self._decoders = [
            (name, column.decode)
            for name, column in zip(self._fields, self.columns, strict=True)
            if column.decode is not None
        ]

    def to_row(self, record: Any) -> Row:
        return converted(structs.astuple(record), self._encoders)

    def from_row(self, row: Iterable[Any]) -> T:
        fields = dict(zip(self._fields, row, strict=True))
        for name, decode in self._decoders:
            if fields[name] is not None:
                fields[name] = decode(fields[name])
        return cast(T, self._record(**fields))


def converted(values: tuple[Any, ...], converters: list[tuple[int, Convert]]) -> Row:
    if not converters:
        return values
    row = list(values)
    for at, convert in converters:
        if row[at] is not None:
            row[at] = convert(row[at])
    return tuple(row)


def _column(name: str, hint: Any, *, whole: bool) -> Column:
    plain = _without_none(hint)
    if plain is bool:
        return Column(name, "boolean", int if whole else None, bool)
    if plain in _SQL_TYPES:
        return Column(name, _SQL_TYPES[plain])
    if plain is Raw:
        return Column(name, "text", lambda value: bytes(value).decode(), Raw)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return Column(name, "text", lambda value: value.value, plain)
    return Column(name, "text", lambda value: _encode(value).decode(), msgspec.json.Decoder(plain).decode)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in {Union, UnionType}:
        return hint
    (plain,) = (each for each in get_args(hint) if each is not type(None))
    return plain
