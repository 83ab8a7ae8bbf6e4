"""Writes the changes of a batch inside its transaction: one statement over many rows per table."""

from __future__ import annotations

import sqlite3

from holdfast.store.protocol import Changes
from holdfast.store.rows import (
    event_to_row,
    execution_to_row,
    output_to_row,
    progress_to_row,
    ready_to_row,
    request_to_row,
    task_to_row,
)
from holdfast.store.sqlite.deletions import write_deletions
from holdfast.store.sqlite.keys import write_keys
from holdfast.store.sqlite.pauses import write_pauses
from holdfast.store.sqlite.statements import rows, statement
from holdfast.store.sqlite.write_messages import write_messages

_INSERT_EXECUTIONS = rows("executions", "insert")
_UPDATE_EXECUTIONS = rows("executions", "update")
_ADVANCE = rows("executions", "advance")
_UPSERT_READY = rows("ready", "upsert")
_DELETE_READY = rows("ready", "delete")
_INSERT_EVENTS = rows("events", "insert")
_UPSERT_WORKFLOW_KEYS = rows("workflow_keys", "upsert")
_INSERT_TASKS = rows("tasks", "insert")
_UPDATE_TASKS = rows("tasks", "update")
_DELETE_TASKS = rows("tasks", "delete")
_PURGE_TASKS = rows("tasks", "purge")
_INSERT_OUTPUT = rows("task_output", "insert")
_TRIM_OUTPUT = statement("task_output", "trim")
_INSERT_TIMERS = rows("timers", "insert")
_DELETE_TIMERS = rows("timers", "delete")
_PURGE_TIMERS = rows("timers", "purge")
_UPSERT_WORKERS = rows("workers", "upsert")
_DELETE_WORKERS = rows("workers", "delete")
_UPSERT_DEFINITIONS = rows("definitions", "upsert")
_UPSERT_REQUESTS = rows("requests", "upsert")
_DELETE_REQUESTS = rows("requests", "delete")
_INSERT_METADATA = rows("metadata", "insert")
_DELETE_METADATA = rows("metadata", "delete")
_INSERT_DEAD_LETTERS = rows("dead_letters", "insert")
_SETTLE_DEAD_LETTERS = rows("dead_letters", "settle")
_DEAD_LETTER = statement("dead_letters", "dead_letter")


def write(connection: sqlite3.Connection, changes: Changes, now: int) -> None:
    """All of it, in one go. Deletes come after inserts: a row made and finished in the same batch must not stay."""
    _write_executions(connection, changes)
    _write_ready(connection, changes)
    if changes.events:
        _INSERT_EVENTS.execute(connection, [event_to_row(key, event) for key, event in changes.events])
    if changes.workflow_keys:
        _UPSERT_WORKFLOW_KEYS.execute(connection, [(*key, value) for key, value in changes.workflow_keys.items()])
    _write_metadata(connection, changes)
    _write_tasks(connection, changes)
    if changes.output:
        _write_output(connection, changes)
    _write_timers(connection, changes)
    write_messages(connection, changes)
    _write_rare(connection, changes)
    if changes.orgs or changes.keys or changes.audit:
        write_keys(connection, changes)
    if changes.pauses or changes.deleted_pauses or changes.deleted_workers:
        write_pauses(connection, changes)
    for execution_id, seq, reason in changes.dead_letter:
        connection.execute(_DEAD_LETTER, (reason, now, execution_id, seq))
    if changes.removed or changes.deletions or changes.purged_orgs or changes.finished_deletions or changes.cleared:
        write_deletions(connection, changes)


def _write_executions(connection: sqlite3.Connection, changes: Changes) -> None:
    new = {execution.id for execution in changes.new_executions}
    if new:
        _INSERT_EXECUTIONS.execute(connection, [execution_to_row(e) for e in changes.new_executions])
    changed = changes.changed_executions
    state_changed = [
        execution_to_row(changed[key]) for key in changes.state_changed if key in changed and key not in new
    ]
    advanced = [progress_to_row(e) for key, e in changed.items() if key not in changes.state_changed and key not in new]
    _UPDATE_EXECUTIONS.execute(connection, state_changed)
    _ADVANCE.execute(connection, advanced)


def _write_metadata(connection: sqlite3.Connection, changes: Changes) -> None:
    _DELETE_METADATA.delete(connection, [(execution_id,) for execution_id in changes.metadata])
    tagged = [*(execution for execution in changes.new_executions if execution.metadata), *changes.metadata.values()]
    tags = [(e.org, key, value, e.id) for e in tagged for key, value in (e.metadata or {}).items()]
    _INSERT_METADATA.execute(connection, tags)


def _write_ready(connection: sqlite3.Connection, changes: Changes) -> None:
    upserted, deleted = [], []
    for execution_id, execution in changes.ready.items():
        if execution.ready is None:
            deleted.append((execution_id,))
        else:
            upserted.append(ready_to_row(execution, execution.ready))
    _UPSERT_READY.execute(connection, upserted)
    _DELETE_READY.delete(connection, deleted)


def _write_tasks(connection: sqlite3.Connection, changes: Changes) -> None:
    if changes.new_tasks:
        _INSERT_TASKS.execute(connection, [task_to_row(task) for task in changes.new_tasks])
    if changes.changed_tasks:
        _UPDATE_TASKS.execute(connection, [task_to_row(task) for task in changes.changed_tasks.values()])
    _DELETE_TASKS.delete(connection, changes.deleted_tasks)
    _PURGE_TASKS.delete(connection, [(execution_id,) for execution_id in changes.purge])


def _write_output(connection: sqlite3.Connection, changes: Changes) -> None:
    _INSERT_OUTPUT.execute(connection, [output_to_row(row) for row in changes.kept_output()])
    for (execution_id, task_no), seq in changes.trimmed_output.items():
        connection.execute(_TRIM_OUTPUT, (execution_id, task_no, seq))


def _write_timers(connection: sqlite3.Connection, changes: Changes) -> None:
    new = [(row.execution_id, row.timer_no, row.org, row.fire_at, row.promise or "") for row in changes.new_timers]
    _INSERT_TIMERS.execute(connection, new)
    _DELETE_TIMERS.delete(connection, changes.deleted_timers)
    _PURGE_TIMERS.delete(connection, [(execution_id,) for execution_id in changes.purge])


def _write_rare(connection: sqlite3.Connection, changes: Changes) -> None:
    workers = [(w.id, w.org, w.host, w.pid, w.started_at, w.lease_until_at) for w in changes.workers.values()]
    _UPSERT_WORKERS.execute(connection, workers)
    _DELETE_WORKERS.delete(connection, [(worker,) for worker in changes.deleted_workers])
    definitions = [(d.org, d.kind, d.version, d.build, d.registered_at) for d in changes.definitions]
    _UPSERT_DEFINITIONS.execute(connection, definitions)
    _DELETE_REQUESTS.delete(connection, changes.deleted_requests)
    requests = [request_to_row(request) for request in changes.requests]
    _UPSERT_REQUESTS.execute(connection, requests)
    dead = [(letter.execution_id, letter.seq, letter.org, letter.reason, letter.at) for letter in changes.dead_letters]
    _INSERT_DEAD_LETTERS.execute(connection, dead)
    _SETTLE_DEAD_LETTERS.delete(connection, changes.settled_letters)
