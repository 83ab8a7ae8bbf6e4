"""Writes the changes of a batch inside its transaction: an array per column, and nearly always one statement for all.

Only keys that were not there before can meet those of another transaction (workflow ids, idempotency keys): they are
written in order, so that two transactions wait for each other in one direction only, and one that comes too late
begins again (`Raced`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.model.executions import TaskRow
from holdfast.store.postgres.deletions import clear, purge_orgs, remove, write_deletions
from holdfast.store.postgres.keys import INSERT_ORGS, new_orgs, write_keys
from holdfast.store.postgres.load import Raced
from holdfast.store.postgres.pauses import write_pauses
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.postgres.write_messages import write_messages
from holdfast.store.postgres.writing import Piece, Writing
from holdfast.store.protocol import Changes, Loaded
from holdfast.store.rows import (
    Row,
    event_to_row,
    execution_to_row,
    output_to_row,
    progress_to_row,
    ready_to_row,
    request_to_row,
    state_to_row,
    task_to_row,
)

_INSERT_EXECUTIONS = statement("executions", "insert")
_UPDATE_EXECUTIONS = statement("executions", "update")
_ADVANCE = statement("executions", "advance")
_UPSERT_READY = statement("ready", "upsert")
_DELETE_READY = statement("ready", "delete")
_INSERT_EVENTS = statement("events", "insert")
_PUT_WORKFLOW_KEYS = statement("workflow_keys", "put")
_INSERT_TASKS = statement("tasks", "insert")
_UPDATE_TASKS = statement("tasks", "update")
_DELETE_TASKS = statement("tasks", "delete")
_PURGE_TASKS = statement("tasks", "purge")
_INSERT_OUTPUT = statement("task_output", "insert")
_TRIM_OUTPUT = statement("task_output", "trim")
_INSERT_TIMERS = statement("timers", "insert")
_DELETE_TIMERS = statement("timers", "delete")
_PURGE_TIMERS = statement("timers", "purge")
_UPSERT_WORKERS = statement("workers", "upsert")
_DELETE_WORKERS = statement("workers", "delete")
_UPSERT_DEFINITIONS = statement("definitions", "upsert")
_INSERT_REQUESTS = statement("requests", "insert")
_DELETE_REQUESTS = statement("requests", "delete")
_INSERT_METADATA = statement("metadata", "insert")
_DELETE_METADATA = statement("metadata", "delete")
_INSERT_DEAD_LETTERS = statement("dead_letters", "insert")
_SETTLE_DEAD_LETTERS = statement("dead_letters", "settle")
_DEAD_LETTER = statement("dead_letters", "dead_letter")


class Seen:
    """What a transaction had found before anything was decided, as far as the writing has to know."""

    __slots__ = ("executions", "last_id", "requests")

    def __init__(self, loaded: Loaded) -> None:
        self.requests = set(loaded.requests)
        self.executions = list(loaded.executions)
        self.last_id = loaded.last_id


async def write(connection: Connection, changes: Changes, seen: Seen, now: int, mark: Piece | None = None) -> None:
    """All of it, in one go, and the mark of the transaction with it."""
    writing = Writing(connection)
    await _write_keys(writing, changes, seen)
    _write_executions(writing, changes)
    _write_ready(writing, changes)
    writing.rows(_INSERT_EVENTS, [event_to_row(key, event) for key, event in changes.events])
    _write_tasks(writing, changes)
    writing.rows(_INSERT_OUTPUT, [output_to_row(row) for row in changes.kept_output()])
    writing.rows(_TRIM_OUTPUT, [(*key, seq) for key, seq in changes.trimmed_output.items()])
    _write_timers(writing, changes)
    write_messages(writing, changes, seen.last_id)
    _write_rare(writing, changes, now)
    write_keys(writing, changes)
    write_pauses(writing, changes)
    write_deletions(writing, changes)
    if mark is not None:
        writing.add(mark)
    await writing.flush()
    if changes.removed:
        await remove(connection, changes)
    if changes.purged_orgs:
        await purge_orgs(connection, changes)
    if changes.cleared:
        await clear(connection, None, changes.cleared)


async def _write_keys(writing: Writing, changes: Changes, seen: Seen) -> None:
    await _put_all(writing, INSERT_ORGS, new_orgs(changes), what="an org has been made")
    forgotten = {*changes.deleted_requests, *((r.org, r.request_id) for r in changes.requests)} & seen.requests
    forgotten.update(changes.deleted_requests)
    if forgotten:
        await writing.connection.execute(_DELETE_REQUESTS, *columns(sorted(forgotten), 0))
    requests = sorted((request_to_row(request) for request in changes.requests), key=_first_two)
    await _put_all(writing, _INSERT_REQUESTS, requests, what="an idempotency key has been used")
    keys = sorted((*key, value) for key, value in changes.workflow_keys.items())
    await _put_all(writing, _PUT_WORKFLOW_KEYS, keys, seen.executions, what="a workflow id has been taken")


async def _put_all(writing: Writing, sql: str, rows: Sequence[Row], *more: Any, what: str) -> None:
    """Rows each of which must find its place free."""
    if rows and await writing.connection.fetchval(sql, *columns(rows, 0), *more) != len(rows):
        raise Raced(what)


def _first_two(row: Row) -> Row:
    return row[:2]


def _write_executions(writing: Writing, changes: Changes) -> None:
    new = {execution.id for execution in changes.new_executions}
    writing.rows(_INSERT_EXECUTIONS, [execution_to_row(e) for e in changes.new_executions])
    changed = changes.changed_executions
    state_changed = [state_to_row(changed[key]) for key in changes.state_changed if key in changed and key not in new]
    advanced = [progress_to_row(e) for key, e in changed.items() if key not in changes.state_changed and key not in new]
    writing.rows(_UPDATE_EXECUTIONS, state_changed)
    writing.rows(_ADVANCE, advanced)
    writing.keys(_DELETE_METADATA, list(changes.metadata))
    tagged = [*(execution for execution in changes.new_executions if execution.metadata), *changes.metadata.values()]
    tags = [(e.org, key, value, e.id) for e in tagged for key, value in (e.metadata or {}).items()]
    writing.rows(_INSERT_METADATA, tags, after=bool(changes.metadata))


def _write_ready(writing: Writing, changes: Changes) -> None:
    upserted, deleted = [], []
    for execution_id, execution in changes.ready.items():
        if execution.ready is None:
            deleted.append(execution_id)
        else:
            upserted.append(ready_to_row(execution, execution.ready))
    writing.rows(_UPSERT_READY, upserted)
    writing.keys(_DELETE_READY, deleted)


def _write_tasks(writing: Writing, changes: Changes) -> None:
    """A row that is made and finished in the same batch is never written."""
    gone, purged = set(changes.deleted_tasks), set(changes.purge)
    new = {
        (task.execution_id, task.task_no): task
        for task in changes.new_tasks
        if (task.execution_id, task.task_no) not in gone and task.execution_id not in purged
    }
    changed = [
        _changed(task)
        for key, task in changes.changed_tasks.items()
        if key not in new and key not in gone and key[0] not in purged
    ]
    writing.rows(_INSERT_TASKS, [task_to_row(changes.changed_tasks.get(key, task)) for key, task in new.items()])
    writing.rows(_UPDATE_TASKS, changed)
    writing.rows(_DELETE_TASKS, [key for key in changes.deleted_tasks if key[0] not in purged])
    writing.keys(_PURGE_TASKS, changes.purge)


def _changed(task: TaskRow) -> Row:
    """What changes of a task: not what was asked for."""
    row = task_to_row(task)
    return (*row[:2], *row[4:6], *row[10:])


def _write_timers(writing: Writing, changes: Changes) -> None:
    gone, purged = set(changes.deleted_timers), set(changes.purge)
    new = [
        (row.execution_id, row.timer_no, row.org, row.fire_at, row.promise or "")
        for row in changes.new_timers
        if (row.execution_id, row.timer_no) not in gone and row.execution_id not in purged
    ]
    writing.rows(_INSERT_TIMERS, new)
    writing.rows(_DELETE_TIMERS, [key for key in changes.deleted_timers if key[0] not in purged])
    writing.keys(_PURGE_TIMERS, changes.purge)


def _write_rare(writing: Writing, changes: Changes, now: int) -> None:
    gone = set(changes.deleted_workers)
    workers = sorted(
        (w.id, w.org, w.host, w.pid, w.started_at, w.lease_until_at)
        for w in changes.workers.values()
        if w.id not in gone
    )
    writing.rows(_UPSERT_WORKERS, workers)
    writing.keys(_DELETE_WORKERS, changes.deleted_workers)
    definitions = [(d.org, d.kind, d.version, d.build, d.registered_at) for d in changes.definitions]
    writing.rows(_UPSERT_DEFINITIONS, sorted(definitions))
    dead = [(letter.execution_id, letter.seq, letter.org, letter.reason, letter.at) for letter in changes.dead_letters]
    writing.rows(_INSERT_DEAD_LETTERS, dead)
    writing.rows(_SETTLE_DEAD_LETTERS, changes.settled_letters, after=bool(dead))
    for execution_id, seq, reason in changes.dead_letter:
        writing.add((_DEAD_LETTER, (reason, now, execution_id, seq)), after=True)
