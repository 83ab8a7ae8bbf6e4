"""The tables. Records are copied in and out: what a transaction was lent it may spoil."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, Protocol, TypeVar

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import (
    DeadLetter,
    DefinitionRow,
    Execution,
    OutputRow,
    Ready,
    RequestRow,
    TaskRow,
    TimerRow,
    WorkerRow,
)
from holdfast.model.keys import ApiKey, AuditRow, Org
from holdfast.model.messages import (
    DeadEvent,
    DeliveryRow,
    EventKeyRow,
    PromiseRow,
    PublishedRow,
    SubscriptionRow,
    TokenRow,
    TriggerRow,
)
from holdfast.model.pauses import Pause, PauseKey
from holdfast.store.protocol import TaskKey, WorkflowKey

Row = TypeVar("Row")


class _Copying(Protocol):
    def __call__(self, row: Row, /) -> Row: ...


copied: _Copying = methodcaller("__copy__")
"""As `copy.copy`, which takes six times as long to find out that this is how a record is copied."""


class MemoryDatabase:
    """Everything there is. `commits` counts the transactions."""

    def __init__(self) -> None:
        self.execution_rows: dict[str, Execution] = {}
        self.ready: dict[str, Ready] = {}
        self.events: dict[str, dict[int, HistoryEvent]] = {}
        self.workflow_keys: dict[WorkflowKey, str] = {}
        self.tasks: dict[TaskKey, TaskRow] = {}
        self.output: dict[TaskKey, dict[int, OutputRow]] = {}
        self.timers: dict[TaskKey, TimerRow] = {}
        self.workers: dict[str, WorkerRow] = {}
        self.definitions: dict[tuple[str, str, str], DefinitionRow] = {}
        self.requests: dict[tuple[str, str], RequestRow] = {}
        self.dead_letters: dict[TaskKey, DeadLetter] = {}
        self.promises: dict[tuple[str, str], PromiseRow] = {}
        self.tokens: dict[str, TokenRow] = {}
        self.subscriptions: dict[int, SubscriptionRow] = {}
        self.published: dict[int, PublishedRow] = {}
        self.event_keys: dict[tuple[str, str], EventKeyRow] = {}
        self.dead_events: dict[int, DeadEvent] = {}
        self.deliveries: dict[int, DeliveryRow] = {}
        self.triggers: dict[tuple[str, str, str], TriggerRow] = {}
        self.orgs: dict[str, Org] = {}
        self.keys: dict[str, ApiKey] = {}
        self.audit: dict[tuple[str, int], AuditRow] = {}
        self.pauses: dict[PauseKey, Pause] = {}
        self.deletions: dict[str, int] = {}
        self.remains: dict[str, str] = {}
        """The orgs of executions that are gone but for their events."""
        self.last_id = 0
        self.commits = 0
        self.listeners: list[Callable[[object], None]] = []
        """The nodes: called after every commit, with whoever has made it."""
        self.watch: Callable[[], None] | None = None
        """Whoever else looks at every commit, and is no node."""

    def execution_row(self, execution_id: str) -> Execution | None:
        """A head with its ready row: the caller's own."""
        found = self.execution_rows.get(execution_id)
        if found is None:
            return None
        execution_row = copied(found)
        if execution_row.metadata is not None:
            execution_row.metadata = dict(execution_row.metadata)
        ready = self.ready.get(execution_id)
        execution_row.ready = copied(ready) if ready is not None else None
        return execution_row

    def history(self, execution_id: str) -> list[HistoryEvent]:
        events = self.events.get(execution_id, {})
        return [events[seq] for seq in sorted(events)]

    def of_execution(self, table: dict[Any, Any], org: str, execution_id: str) -> list[Any]:
        """The rows of one execution, copied, in the order of their keys."""
        found = [key for key, row in table.items() if row.execution_id == execution_id and row.org == org]
        return [copied(table[key]) for key in sorted(found)]
