"""Pages of executions: filters to SQL.

A page is made of branches, one for each way into an index (state, kind, workflow id, tag, ready row); SQLite merges
them by id and stops at the limit. Each way leads to one org's rows, so that a small org does not pay for a large one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from holdfast.model.executions import Execution, State, WorkflowStatus
from holdfast.store.id_spans import AFTER_ALL_IDS, id_span
from holdfast.store.queries import ExecutionQuery
from holdfast.store.rows import row_to_execution
from holdfast.store.sqlite.statements import statement

# Statuses that are not stored: the state, and a condition on the ready row.
_DERIVED: Final = {
    WorkflowStatus.PENDING: (State.OPEN.value, "where_pending"),
    WorkflowStatus.RUNNING: (State.OPEN.value, "where_running"),
    WorkflowStatus.WAITING: (State.OPEN.value, "where_waiting"),
}
_NEED_READY: Final = frozenset({"where_pending", "where_running"})


def list_executions(connection: sqlite3.Connection, query: ExecutionQuery) -> list[Execution]:
    """One page, newest first."""
    branches = list(_branches(query))
    sql = "\nUNION ALL\n".join(text for text, _ in branches) + "\n" + statement("executions", "page_order")
    values = [value for _, bound in branches for value in bound]
    return [row_to_execution(row) for row in connection.execute(sql, [*values, query.limit]).fetchall()]


def _branches(query: ExecutionQuery) -> Iterator[tuple[str, list[Any]]]:
    first, last = id_span(query)
    cursor = query.before if query.before is not None else AFTER_ALL_IDS
    for state, condition in _places(query):
        for kind in dict.fromkeys(query.kinds) or (None,):
            filters = {"where_state": state, "where_kind": kind}
            for way, key in _ways(query, state, condition, kind):
                entry = [query.org, *key, last]
                yield _branch(query, way, entry, condition, {"where_id_from": first or None, **filters})
            if query.workflow_id is None and (query.created_from is not None or query.created_before is not None):
                yield _branch(query, "page_astray", [query.org, cursor, first, last], condition, filters)


def _places(query: ExecutionQuery) -> list[tuple[str | None, str]]:
    """Stored states with a condition on the ready row."""
    if query.statuses:
        return [_DERIVED.get(status, (status.value, "")) for status in dict.fromkeys(query.statuses)]
    if query.kinds or query.workflow_id is not None or query.metadata:
        return [(None, "")]
    return [(state.value, "") for state in State]


def _ways(query: ExecutionQuery, state: str | None, condition: str, kind: str | None) -> list[tuple[str, list[Any]]]:
    """The narrowest way to the rows, with the key to enter by."""
    if query.workflow_id is not None:
        return [("page_of_workflow", [query.workflow_id]), ("page_of_id", [query.workflow_id])]
    if condition in _NEED_READY:
        return [("page_of_ready", [state])]
    if query.metadata:
        return [("page_of_metadata", list(query.metadata[0]))]
    return [("page_of_kind", [kind])] if kind is not None else [("page_of_state", [state])]


def _branch(
    query: ExecutionQuery, way: str, entry: list[Any], condition: str, wanted: dict[str, str | None]
) -> tuple[str, list[Any]]:
    filters: dict[str, Any] = {
        **wanted,
        "where_queue": query.queue,
        "where_created_from": query.created_from,
        "where_created_before": query.created_before,
    }
    used = {name: value for name, value in filters.items() if value is not None}
    tags = query.metadata[1:] if way == "page_of_metadata" else query.metadata
    names = [way, *([condition] if condition else []), *used, *("where_tagged" for _ in tags)]
    values = [*entry, *used.values(), *(text for tag in tags for text in tag)]
    return "\n".join(statement("executions", name) for name in names), values
