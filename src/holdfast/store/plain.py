"""The plain tables, and how their records become rows and come back; the same for every store.

A table is added by declaring its record (`model.records`), naming it here, and a migration for each store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Raw, structs

from holdfast.model.executions import DefinitionRow, RequestRow, WorkerRow
from holdfast.model.keys import ApiKey, AuditRow, Deletion, Org
from holdfast.model.messages import DeadEvent, EventKeyRow, TokenRow, TriggerRow
from holdfast.model.pauses import Pause
from holdfast.model.records import Table, table_of
from holdfast.store.rows import Row

T = TypeVar("T")
Convert = Callable[[Any], Any]

RECORDS: Final[tuple[type[Any], ...]] = (
    WorkerRow,
    Org,
    ApiKey,
    AuditRow,
    Deletion,
    Pause,
    RequestRow,
    TokenRow,
    DefinitionRow,
    EventKeyRow,
    DeadEvent,
    TriggerRow,
)
"""In the order in which they are loaded, and so locked, and written."""

_SQL_TYPES: Final[dict[Any, str]] = {
    str: "text",
    int: "bigint",
    float: "double precision",
    bool: "boolean",
    bytes: "bytea",
}
_encode = msgspec.json.Encoder().encode


class Column(msgspec.Struct, frozen=True):
    """`type` is PostgreSQL's word for it. None is never converted."""

    name: str
    type: str
    encode: Convert | None = None
    decode: Convert | None = None


class PlainTable(Generic[T]):
    """One table: its declaration and its row codec."""

    __slots__ = ("_decoders", "_encoders", "_fields", "_key_encoders", "columns", "key", "key_of", "not_in_key", "spec")

    def __init__(self, spec: Table) -> None:
        self.spec = spec
        fields = structs.fields(spec.record)
        self.columns = tuple(_column(spec.columns.get(field.name, field.name), field.type) for field in fields)
        self.key = tuple(next(column for column in self.columns if column.name == name) for name in spec.key)
        self.not_in_key = tuple(column.name for column in self.columns if column.name not in spec.key)
        self.key_of = spec.key_of
        self._fields = tuple(field.name for field in fields)
        self._encoders = [(at, column.encode) for at, column in enumerate(self.columns) if column.encode is not None]
        self._decoders = [
            (name, column.decode)
            for name, column in zip(self._fields, self.columns, strict=True)
            if column.decode is not None
        ]
        self._key_encoders = [(at, column.encode) for at, column in enumerate(self.key) if column.encode is not None]

    def to_row(self, record: Any) -> Row:
        return _converted(structs.astuple(record), self._encoders)

    def from_row(self, row: Iterable[Any]) -> T:
        fields = dict(zip(self._fields, row, strict=True))
        for name, decode in self._decoders:
            if fields[name] is not None:
                fields[name] = decode(fields[name])
        record: T = self.spec.record(**fields)
        return record

    def key_to_row(self, key: Any) -> Row:
        """Also the beginning of a key, if the key has several columns."""
        if len(self.key) == 1:
            key = (key,)
        return _converted(key, [(at, encode) for at, encode in self._key_encoders if at < len(key)])

    def keys_to_rows(self, keys: Iterable[Any]) -> list[Row]:
        """In order: those who lock the same rows wait in one direction only."""
        return sorted(map(self.key_to_row, keys))


def _converted(values: tuple[Any, ...], converters: list[tuple[int, Convert]]) -> Row:
    if not converters:
        return values
    row = list(values)
    for at, convert in converters:
        if row[at] is not None:
            row[at] = convert(row[at])
    return tuple(row)


def _column(name: str, hint: Any) -> Column:
    plain = _without_none(hint)
    if plain in _SQL_TYPES:
        return Column(name, _SQL_TYPES[plain], decode=bool if plain is bool else None)
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


TABLES: Final[dict[type[Any], PlainTable[Any]]] = {record: PlainTable(table_of(record)) for record in RECORDS}


def key_and_org(row: Row) -> tuple[ApiKey, Org]:
    """A row of both tables: first the org, then the key."""
    orgs, keys = TABLES[Org], TABLES[ApiKey]
    width = len(orgs.columns)
    return keys.from_row(row[width:]), orgs.from_row(row[:width])


OF_EXECUTION: Final = (
    "holdfast_ready",
    "holdfast_tasks",
    "holdfast_task_output",
    "holdfast_timers",
    "holdfast_subscriptions",
    "holdfast_promises",
    "holdfast_dead_letters",
    "holdfast_metadata",
    *(table.spec.name for table in TABLES.values() if table.spec.owner == "execution_id"),
)
"""Tables whose rows go with their execution. Its events may stay for a while."""

OF_ORG: Final[dict[str, tuple[str, ...]]] = {
    "holdfast_workflow_keys": ("org", "workflow_id"),
    "holdfast_published": ("id",),
    "holdfast_deliveries": ("id",),
    **{table.spec.name: table.spec.key for table in TABLES.values() if table.spec.owner == "org"},
}
"""Tables whose rows go with their org, and what they are found by; besides its executions and what these have."""
