"""Removing executions with all they have, and orgs, a page in each transaction."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from holdfast.store.protocol import Changes
from verification.memory.database import MemoryDatabase


def write_deletions(database: MemoryDatabase, changes: Changes) -> None:
    if changes.removed:
        _remove(database, changes.removed.keys(), changes.remains)
        database.remains.update((key, changes.removed[key].org) for key in changes.remains)
        for execution_row in changes.removed.values():
            if database.workflow_keys.get((execution_row.org, execution_row.workflow_id)) == execution_row.id:
                del database.workflow_keys[execution_row.org, execution_row.workflow_id]
    for org, page in changes.purged_orgs.items():
        _purge(database, org, page)
    if changes.cleared:
        _clear(database, list(database.remains), changes.cleared)
    for org, since_at in changes.deletions.items():
        database.deletions.setdefault(org, since_at)
    for org in changes.finished_deletions:
        database.deletions.pop(org, None)


def _purge(database: MemoryDatabase, org: str, page: int) -> None:
    found = [key for key, execution_row in database.execution_rows.items() if execution_row.org == org][:page]
    _remove(database, found)
    if not found:
        _clear(database, [key for key, of in database.remains.items() if of == org], page)
        for table in _of_org(database):
            for key in [key for key, row in table.items() if _org_of(key, row) == org][:page]:
                del table[key]


def _clear(database: MemoryDatabase, found: list[str], page: int) -> None:
    for key in found:
        events = database.events.setdefault(key, {})
        for seq in sorted(events, reverse=True)[:page]:
            del events[seq]
            page -= 1
        if events:
            return
        del database.events[key], database.remains[key]


def _remove(database: MemoryDatabase, found: Collection[str], remains: Collection[str] = ()) -> None:
    gone = set(found)
    by_key: tuple[dict[Any, Any], ...] = (
        database.tasks,
        database.timers,
        database.dead_letters,
        database.promises,
        database.output,
    )
    for table in by_key:
        _drop(table, lambda key, _: key[0] in gone)
    _drop(database.subscriptions, lambda _, row: row.execution_id in gone)
    _drop(database.tokens, lambda _, row: row.execution_id in gone)
    for key in found:
        database.ready.pop(key, None)
        if key not in remains:
            database.events.pop(key, None)
        del database.execution_rows[key]


def _drop(table: dict[Any, Any], is_gone: Any) -> None:
    for key in [key for key, row in table.items() if is_gone(key, row)]:
        del table[key]


def _of_org(database: MemoryDatabase) -> tuple[dict[Any, Any], ...]:
    return (
        database.workflow_keys,
        database.definitions,
        database.requests,
        database.published,
        database.event_keys,
        database.dead_events,
        database.deliveries,
        database.triggers,
        database.workers,
        database.keys,
        database.pauses,
        database.promises,
    )


def _org_of(key: Any, row: Any) -> Any:
    return getattr(row, "org", None) or key[0]


def holds_any(database: MemoryDatabase, org: str) -> bool:
    if org in database.remains.values():
        return True
    return any(
        _org_of(key, row) == org
        for table in (database.execution_rows, *_of_org(database))
        for key, row in table.items()
    )
