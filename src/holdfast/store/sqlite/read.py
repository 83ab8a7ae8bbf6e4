"""Queries for callers: connection in, records out, scoped by org except where the engine itself asks."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Execution, OutputRow, State, TaskRow, TimerRow, WorkflowStatus
from holdfast.store.queries import Inconsistency
from holdfast.store.rows import (
    row_to_dead_letter,
    row_to_event,
    row_to_execution,
    row_to_output,
    row_to_task,
    row_to_timer,
)
from holdfast.store.sqlite.statements import rows, statement

_EXECUTIONS = rows("executions", "by_id")
_LAST_EVENTS = rows("events", "last")
_BY_WORKFLOW_ID = statement("executions", "by_workflow_id")
_EVENTS = statement("events", "page")
_EVENTS_OF_TYPES = statement("events", "page_of_types")
_EVENTS_OF_EACH = statement("events", "of_each")
_COUNT_BY_STATE = statement("executions", "count_by_state")
_COUNT_READY = statement("executions", "count_ready")
_TASKS = statement("tasks", "of_execution")
_TASKS_OF_EACH = statement("tasks", "of_each")
_TASK = statement("tasks", "one")
_OUTPUT = statement("task_output", "page")
_TIMERS = statement("timers", "of_execution")
_DEAD_LETTERS = statement("dead_letters", "of_org")
_DEAD_LETTERS_OF_EXECUTION = statement("dead_letters", "of_execution")
_PENDING_EVENTS = statement("ready", "news")
_UNREAD = statement("executions", "unread_without_ready")
_MISSING = statement("executions", "waiting_for_missing")
_NEXT: Final = (
    (statement("timers", "next_due"), False),
    (statement("tasks", "next_due"), False),
    (statement("deliveries", "next_due"), False),
    (statement("tasks", "next_delayed"), True),
    (statement("ready", "next_delayed"), True),
)


def executions(connection: sqlite3.Connection, ids: Sequence[str]) -> Iterator[tuple[str, str, Execution]]:
    for row in _EXECUTIONS.fetch(connection, [(execution_id,) for execution_id in ids]):
        execution_row = row_to_execution(row)
        yield execution_row.id, execution_row.org, execution_row


def last_events(connection: sqlite3.Connection, ids: Sequence[str]) -> Iterator[tuple[str, str, HistoryEvent]]:
    for execution_id, org, *event in _LAST_EVENTS.fetch(connection, [(execution_id,) for execution_id in ids]):
        yield execution_id, org, row_to_event(*event)


def execution_by_workflow_id(connection: sqlite3.Connection, org: str, workflow_id: str) -> Execution | None:
    row = connection.execute(_BY_WORKFLOW_ID, (org, workflow_id)).fetchone()
    return row_to_execution(row) if row is not None else None


def history(
    connection: sqlite3.Connection,
    org: str,
    execution_id: str,
    *,
    after: int = 0,
    limit: int | None = None,
    types: Sequence[str] = (),
) -> list[HistoryEvent]:
    most = -1 if limit is None else limit
    if types:
        found = connection.execute(_EVENTS_OF_TYPES, (execution_id, after, org, json.dumps(list(types)), most))
    else:
        found = connection.execute(_EVENTS, (execution_id, after, org, most))
    return [row_to_event(*row) for row in found.fetchall()]


def events_of(
    connection: sqlite3.Connection, org: str, ids: Sequence[str], types: Sequence[str]
) -> dict[str, list[HistoryEvent]]:
    found: dict[str, list[HistoryEvent]] = {}
    asked = (json.dumps(list(ids)), org, json.dumps(list(types)))
    for execution_id, *event in connection.execute(_EVENTS_OF_EACH, asked).fetchall():
        found.setdefault(execution_id, []).append(row_to_event(*event))
    return found


def count_executions(connection: sqlite3.Connection, org: str) -> dict[WorkflowStatus, int]:
    """Statuses that occur. One snapshot, so that the parts fit together."""
    connection.execute("BEGIN")
    try:
        states = dict(connection.execute(_COUNT_BY_STATE, (org,)).fetchall())
        pending, running = connection.execute(_COUNT_READY, (org,)).fetchone()
    finally:
        connection.execute("COMMIT")
    waiting = states.pop(State.OPEN.value, 0) - pending - running
    counts = {WorkflowStatus.PENDING: pending, WorkflowStatus.RUNNING: running, WorkflowStatus.WAITING: waiting}
    counts.update({WorkflowStatus(state): count for state, count in states.items()})
    return {status: count for status, count in counts.items() if count}


def tasks(connection: sqlite3.Connection, org: str, execution_id: str) -> list[TaskRow]:
    return [row_to_task(row) for row in connection.execute(_TASKS, (execution_id, org)).fetchall()]


def tasks_of(connection: sqlite3.Connection, org: str, ids: Sequence[str]) -> dict[str, list[TaskRow]]:
    found: dict[str, list[TaskRow]] = {}
    for row in connection.execute(_TASKS_OF_EACH, (json.dumps(list(ids)), org)).fetchall():
        task = row_to_task(row)
        found.setdefault(task.execution_id, []).append(task)
    return found


def task(connection: sqlite3.Connection, org: str, execution_id: str, task_no: int) -> TaskRow | None:
    row = connection.execute(_TASK, (execution_id, task_no, org)).fetchone()
    return row_to_task(row) if row is not None else None


def task_output(
    connection: sqlite3.Connection, org: str, execution_id: str, task_no: int, *, after: int, limit: int
) -> list[OutputRow]:
    found = connection.execute(_OUTPUT, (execution_id, task_no, after, org, limit)).fetchall()
    return [row_to_output(row) for row in found]


def timers(connection: sqlite3.Connection, org: str, execution_id: str) -> list[TimerRow]:
    return [row_to_timer(row) for row in connection.execute(_TIMERS, (execution_id, org)).fetchall()]


def dead_letters(connection: sqlite3.Connection, org: str, execution_id: str | None, limit: int) -> list[DeadLetter]:
    if execution_id is None:
        found = connection.execute(_DEAD_LETTERS, (org, limit)).fetchall()
    else:
        found = connection.execute(_DEAD_LETTERS_OF_EXECUTION, (execution_id, org, limit)).fetchall()
    return [row_to_dead_letter(row)[0] for row in found]


def next_due_at(connection: sqlite3.Connection, after: int) -> int | None:
    """A delay that was over at `after` does not count: such a row waits for a worker, not for the clock."""
    found = [connection.execute(sql, (after,) if delayed else ()).fetchone()[0] for sql, delayed in _NEXT]
    return min((at for at in found if at is not None), default=None)


def pending_events_for(connection: sqlite3.Connection, worker: str) -> list[tuple[str, int]]:
    return connection.execute(_PENDING_EVENTS, (worker,)).fetchall()


def inconsistencies(connection: sqlite3.Connection, org: str, limit: int) -> list[Inconsistency]:
    found = {
        row[0]: Inconsistency(execution_id=row[0], unread=True)
        for row in connection.execute(_UNREAD, (org, limit)).fetchall()
    }
    missing: dict[str, dict[str, list[int]]] = {}
    for execution_id, kind, number in connection.execute(_MISSING, (org,)):
        if execution_id not in missing and len(found) + len(missing) >= limit:
            break
        missing.setdefault(execution_id, defaultdict(list))[kind].append(number)
    for execution_id, numbers in missing.items():
        found[execution_id] = Inconsistency(
            execution_id=execution_id,
            missing_timers=tuple(numbers["timer"]),
            missing_tasks=tuple(numbers["task"]),
            missing_waits=tuple(numbers["wait"]),
            missing_promises=tuple(numbers["promise"]),
        )
    return list(found.values())[:limit]
