"""Removing executions with all they have, and orgs: a page in each transaction, first what their executions have, then
these, then what is left.

An execution that was closed long ago goes at once but for its events, if these are many: no reader finds them without
the head, and a row of `holdfast_remains` says that they are there until the last of them is gone.
"""

from __future__ import annotations

from typing import Final

from holdfast.store.closed_pages import ClosedPage, closed_after, page_of
from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes

_EXECUTIONS_OF = statement("deletions", "executions_of")
_OWNED: Final = tuple(
    statement("deletions", name)
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
_EXECUTIONS = statement("deletions", "executions")
_ALL_EVENTS_OF = statement("deletions", "all_events_of")
_WORKFLOW_KEYS_OF = statement("deletions", "workflow_keys_of")
_CLOSED_PAGE = statement("deletions", "closed_page")
_LEAVE = statement("deletions", "leave")
_REMAINS = statement("deletions", "remains")
_LAST_EVENTS_OF = statement("deletions", "last_events_of")
_SHORTEN = statement("deletions", "shorten")
_CLEARED = statement("deletions", "cleared")
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
_BEGIN = statement("deletions", "begin")
_FINISH = statement("deletions", "finish")
_ALL = statement("deletions", "all")
_HOLDS_ANY = statement("deletions", "holds_any")


async def purge_orgs(connection: Connection, changes: Changes) -> None:
    for org, page in changes.purged_orgs.items():
        await _purge(connection, org, page)


async def remove(connection: Connection, changes: Changes) -> None:
    """Executions that were closed long ago."""
    ids = sorted(changes.removed)
    for sql in (*_OWNED, _EXECUTIONS):
        await connection.execute(sql, ids)
    await connection.execute(_ALL_EVENTS_OF, [key for key in ids if key not in changes.remains])
    left = [
        (execution_row.id, execution_row.org, execution_row.last_seq)
        for execution_row in changes.removed.values()
        if execution_row.id in changes.remains
    ]
    if left:
        await connection.execute(_LEAVE, *columns(sorted(left), 3))
    keys = [
        (execution_row.org, execution_row.workflow_id, execution_row.id) for execution_row in changes.removed.values()
    ]
    await connection.execute(_WORKFLOW_KEYS_OF, *columns(sorted(keys), 3))


async def clear(connection: Connection, org: str | None, page: int) -> None:
    """About so many events that removed executions of an org, or of all orgs, have left behind."""
    gone, left = list[str](), page
    for execution_id, last_seq in await connection.fetch(_REMAINS, org, page):
        rest = max(last_seq - left, 0)
        await connection.execute(_LAST_EVENTS_OF, execution_id, rest, last_seq)
        left -= last_seq - rest
        if rest:
            await connection.execute(_SHORTEN, execution_id, rest)
            break
        gone.append(execution_id)
    if gone:
        await connection.execute(_CLEARED, gone)


def write_deletions(writing: Writing, changes: Changes) -> None:
    writing.rows(_BEGIN, sorted(changes.deletions.items()))
    writing.keys(_FINISH, sorted(changes.finished_deletions), after=bool(changes.deletions))


async def _purge(connection: Connection, org: str, page: int) -> None:
    found = [row[0] for row in await connection.fetch(_EXECUTIONS_OF, org, page)]
    for sql in _OWNED if found else ():
        await connection.execute(sql, found)
    gone, left = list[str](), page
    for execution_id in found:
        left -= await connection.fetchval(_EVENTS_OF, execution_id, left)
        if left <= 0:
            break
        gone.append(execution_id)
    if gone:
        await connection.execute(_EXECUTIONS, gone)
    if not found:
        await clear(connection, org, page)
    for sql in () if found else _OF_ORG:
        await connection.execute(sql, org, page)


async def deletions(connection: Connection) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in await connection.fetch(_ALL)]


@index_only
async def holds_any(connection: Connection, org: str) -> bool:
    return bool(await connection.fetchval(_HOLDS_ANY, org))


@index_only
async def closed_page(connection: Connection, before: int, after: str, limit: int) -> ClosedPage:
    return page_of(await connection.fetch(_CLOSED_PAGE, *closed_after(after), before, limit), limit)


async def has_remains(connection: Connection) -> bool:
    return bool(await connection.fetchval(_HAS_REMAINS))
