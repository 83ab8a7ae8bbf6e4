"""Removing executions with all they have, and orgs: a page in each transaction, first what their executions have, then
these, then what is left.

An execution that was closed long ago goes at once but for its events, if these are many: no reader finds them without
the head, and a row of `holdfast_remains` says that they are there until the last of them is gone.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from holdfast.store.closed_pages import ClosedPage, closed_after, page_of
from holdfast.store.protocol import Changes
from holdfast.store.sqlite.statements import rows, statement

_EXECUTIONS_OF = statement("deletions", "executions_of")
_OWNED: Final = tuple(
    rows("deletions", name)
    for name in (
        "ready",
        "tasks",
        "task_output",
        "timers",
        "subscriptions",
        "promises",
        "tokens",
        "dead_letters",
        "metadata",
    )
)
_EVENTS_OF = statement("deletions", "events_of")
_EXECUTIONS = rows("deletions", "executions")
_ALL_EVENTS_OF = rows("deletions", "all_events_of")
_WORKFLOW_KEYS_OF = rows("deletions", "workflow_keys_of")
_CLOSED_PAGE = statement("deletions", "closed_page")
_LEAVE = rows("deletions", "leave")
_REMAINS = statement("deletions", "remains")
_LAST_EVENTS_OF = statement("deletions", "last_events_of")
_SHORTEN = statement("deletions", "shorten")
_CLEARED = rows("deletions", "cleared")
_HAS_REMAINS = statement("deletions", "has_remains")
_OF_ORG: Final = tuple(
    statement("deletions", name)
    for name in (
        "workflow_keys",
        "definitions",
        "requests",
        "published",
        "event_keys",
        "dead_events",
        "deliveries",
        "event_triggers",
        "workers",
        "api_keys",
        "pauses",
        "early_promises",
    )
)
_BEGIN = rows("deletions", "begin")
_FINISH = rows("deletions", "finish")
_ALL = statement("deletions", "all")
_HOLDS_ANY = statement("deletions", "holds_any")


def write_deletions(connection: sqlite3.Connection, changes: Changes) -> None:
    if changes.removed:
        _remove(connection, changes)
    for org, page in changes.purged_orgs.items():
        _purge(connection, org, page)
    if changes.cleared:
        _clear(connection, None, changes.cleared)
    _BEGIN.execute(connection, list(changes.deletions.items()))
    _FINISH.delete(connection, [(org,) for org in changes.finished_deletions])


def _remove(connection: sqlite3.Connection, changes: Changes) -> None:
    """Executions that were closed long ago."""
    ids = [(execution_id,) for execution_id in changes.removed]
    for table in (*_OWNED, _EXECUTIONS):
        table.delete(connection, ids)
    _ALL_EVENTS_OF.delete(connection, [key for key in ids if key[0] not in changes.remains])
    _LEAVE.execute(
        connection,
        [
            (execution_row.id, execution_row.org, execution_row.last_seq)
            for execution_row in changes.removed.values()
            if execution_row.id in changes.remains
        ],
    )
    keys = [
        (execution_row.org, execution_row.workflow_id, execution_row.id) for execution_row in changes.removed.values()
    ]
    _WORKFLOW_KEYS_OF.delete(connection, keys)


def _clear(connection: sqlite3.Connection, org: str | None, page: int) -> None:
    """About so many events that removed executions of an org, or of all orgs, have left behind."""
    gone, left = list[tuple[str]](), page
    for execution_id, last_seq in connection.execute(_REMAINS, (org, page)).fetchall():
        rest = max(last_seq - left, 0)
        connection.execute(_LAST_EVENTS_OF, (execution_id, rest, last_seq))
        left -= last_seq - rest
        if rest:
            connection.execute(_SHORTEN, (execution_id, rest))
            break
        gone.append((execution_id,))
    _CLEARED.delete(connection, gone)


def _purge(connection: sqlite3.Connection, org: str, page: int) -> None:
    found = connection.execute(_EXECUTIONS_OF, (org, page)).fetchall()
    for table in _OWNED:
        table.delete(connection, found)
    gone, left = list[tuple[str]](), page
    for (execution_id,) in found:
        left -= connection.execute(_EVENTS_OF, (execution_id, left)).rowcount
        if left <= 0:
            break
        gone.append((execution_id,))
    _EXECUTIONS.delete(connection, gone)
    if not found:
        _clear(connection, org, page)
        for sql in _OF_ORG:
            connection.execute(sql, (org, page))


def deletions(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in connection.execute(_ALL).fetchall()]


def holds_any(connection: sqlite3.Connection, org: str) -> bool:
    return bool(connection.execute(_HOLDS_ANY, (org,)).fetchone()[0])


def closed_page(connection: sqlite3.Connection, before: int, after: str, limit: int) -> ClosedPage:
    return page_of(connection.execute(_CLOSED_PAGE, (*closed_after(after), before, limit)).fetchall(), limit)


def has_remains(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_HAS_REMAINS).fetchone()[0])
