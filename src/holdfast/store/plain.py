"""The plain tables, and how their records become rows and come back; the same for every store.

A table is added by declaring its record (`model.records`), naming it here, and a migration for each store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from holdfast.model.executions import DefinitionRow, RequestRow, WorkerRow
from holdfast.model.keys import ApiKey, AuditRow, Deletion, Org
from holdfast.model.messages import DeadEvent, EventKeyRow, TokenRow, TriggerRow
from holdfast.model.pauses import Pause
from holdfast.model.records import Table, table_of
from holdfast.model.snapshots import Snapshot
from holdfast.store.codecs import Codec, converted
from holdfast.store.rows import Row

T = TypeVar("T")

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
    Snapshot,
)
"""In the order in which they are loaded, and so locked, and written."""


class PlainTable(Codec[T]):
    """One table: its declaration and its row codec."""

    __slots__ = ("_key_encoders", "key", "key_of", "not_in_key", "spec")

    def __init__(self, spec: Table) -> None:
        super().__init__(spec.record, spec.columns)
        self.spec = spec
        self.key_of = spec.key_of
        self.key = tuple(next(column for column in self.columns if column.name == name) for name in spec.key)
        self.not_in_key = tuple(column.name for column in self.columns if column.name not in spec.key)
        self._key_encoders = [(at, column.encode) for at, column in enumerate(self.key) if column.encode is not None]

    def key_to_row(self, key: Any) -> Row:
        """Also the beginning of a key, if the key has several columns."""
        if len(self.key) == 1:
            key = (key,)
        return converted(key, [(at, encode) for at, encode in self._key_encoders if at < len(key)])

    def keys_to_rows(self, keys: Iterable[Any]) -> list[Row]:
        """In order: those who lock the same rows wait in one direction only."""
        return sorted(map(self.key_to_row, keys))


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
