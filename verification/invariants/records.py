"""Executions as they are checked, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec

from holdfast.model import events as e
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import Execution, TaskRow, TimerRow
from holdfast.model.messages import PromiseRow, SubscriptionRow
from holdfast.store.protocol import Store
from holdfast.store.queries import ExecutionQuery

PAGE: Final = 500
PASSES: Final = 50


class Violation(msgspec.Struct, frozen=True, order=True):
    """What does not hold, and where. `seq` is 0 when no single event is at fault."""

    invariant: str
    execution_id: str
    seq: int
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.execution_id} #{self.seq}: {self.text}"


class Record(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One execution: its head with the ready row, its history, and its unfinished rows if they were read.

    `kinds` are the events that its history has: most checks are about some that few histories have.
    """

    execution_row: Execution
    history: Sequence[HistoryEvent]
    tasks: Sequence[TaskRow] | None = None
    timers: Sequence[TimerRow] | None = None
    waits: Sequence[SubscriptionRow] | None = None
    promises: Sequence[PromiseRow] | None = None

    @cached_property
    def kinds(self) -> frozenset[type[e.EventBody]]:
        return frozenset([type(event.body) for event in self.history])


def as_stored(event: HistoryEvent) -> tuple[int, int, str, bytes]:
    """An event to compare: payloads compare by identity, their text does not."""
    return event.seq, event.at, event.type, e.encode_body(event.body)


def own_reset(record: Record) -> HistoryEvent | None:
    """The event that ends what was copied into this history, if anything was. Copied ones may be among the copies."""
    if e.WorkflowReset not in record.kinds:
        return None
    return next(event for event in reversed(record.history) if type(event.body) is e.WorkflowReset)


def own_events(record: Record) -> Sequence[HistoryEvent]:
    """Those that happened to this execution, without the copies of another one's."""
    reset = own_reset(record)
    return record.history if reset is None else record.history[reset.seq - 1 :]


async def read(store: Store, org: str = "default") -> list[Record]:
    """Every execution of an org, oldest first. The store must be open.

    As of one moment: those that have moved meanwhile are read again until nothing has. Where writers never pause, what
    there is after fifty passes is taken; the executions may then disagree about each other.
    """
    found: dict[str, Record] = {}
    for _ in range(PASSES):
        execution_rows = await _execution_rows(store, org)
        moved = [
            execution_row
            for execution_row in execution_rows
            if execution_row.id not in found or found[execution_row.id].execution_row != execution_row
        ]
        if not moved:
            break
        for execution_row in moved:
            found[execution_row.id] = await _read_one(store, execution_row)
    return [found[key] for key in sorted(found)]


async def _execution_rows(store: Store, org: str) -> list[Execution]:
    found: list[Execution] = []
    before: str | None = None
    while page := await store.list_executions(ExecutionQuery(org=org, before=before, limit=PAGE)):
        found.extend(page)
        before = page[-1].id
    return found


async def _read_one(store: Store, execution_row: Execution) -> Record:
    """Rows that belong together: read again if the execution has moved between its head and its rows."""
    while True:
        history = await store.history(execution_row.org, execution_row.id)
        tasks = await store.tasks(execution_row.org, execution_row.id)
        timers = await store.timers(execution_row.org, execution_row.id)
        waits = await store.waits(execution_row.org, execution_row.id)
        promises = await store.promises(execution_row.org, execution_row.id)
        now = (await store.executions(execution_row.org, [execution_row.id]))[execution_row.id]
        if now == execution_row:
            return Record(
                execution_row=execution_row, history=history, tasks=tasks, timers=timers, waits=waits, promises=promises
            )
        execution_row = now
