"""Removing executions with all they have, and orgs: a page in each transaction, first what their executions have, then
these, then what is left."""

from __future__ import annotations

from typing import Final

from holdfast.store import id_spans
from holdfast.store.postgres.planning import by_keys
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes, ClosedPage

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
    for sql in (*_OWNED, _ALL_EVENTS_OF, _EXECUTIONS):
        await connection.execute(sql, ids)
    keys = [(head.org, head.workflow_id, head.id) for head in changes.removed.values()]
    await connection.execute(_WORKFLOW_KEYS_OF, *columns(sorted(keys), 3))


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
    for sql in () if found else _OF_ORG:
        await connection.execute(sql, org, page)


async def deletions(connection: Connection) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in await connection.fetch(_ALL)]


@by_keys
async def holds_any(connection: Connection, org: str) -> bool:
    return bool(await connection.fetchval(_HOLDS_ANY, org))


@by_keys
async def closed_page(connection: Connection, before: int, after: str, limit: int) -> ClosedPage:
    rows = await connection.fetch(_CLOSED_PAGE, after, id_spans.before_id(before), limit)
    return id_spans.closed_page(rows, before, limit)
