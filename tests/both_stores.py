"""Which tests run on PostgreSQL, too: all in which an engine opens a database, but for those that say why not.

A test whose engines use `database_url` or `new_database` runs on the store that HOLDFAST_TEST_STORE names. One whose
engine opens a database of SQLite by another way would be left out there, or be taken for one that runs on both, and
nobody would notice. So it fails, unless it is marked `sqlite_only` with the reason; the summary of a run on PostgreSQL
lists those that are left out.

What other processes open is not seen.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.engine.group_commit import OperationQueue
from holdfast.store.protocol import BatchSource
from holdfast.store.sqlite.store import SqliteStore

STORE = os.environ.get("HOLDFAST_TEST_STORE", "sqlite")

opened_sqlite: list[str] = []
"""The databases of SQLite that engines have opened since the test began."""


def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note what engines open. A store of its own, without an engine, does not count."""
    open_ = SqliteStore.open

    async def noted(self: SqliteStore, source: BatchSource) -> None:
        if isinstance(source, OperationQueue):
            opened_sqlite.append(type(self).__name__)
        await open_(self, source)

    monkeypatch.setattr(SqliteStore, "open", noted)


def runs_on_both(item: pytest.Item) -> bool:
    """Not what takes PostgreSQL by itself: that needs no second run."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool({"database_url", "new_database"} & fixtures) and "postgres_url" not in fixtures


def why_sqlite_only(item: pytest.Item) -> str | None:
    """None if it is not marked."""
    mark = item.get_closest_marker("sqlite_only")
    if mark is None:
        return None
    reason: Any = mark.args[0] if mark.args else None
    if not isinstance(reason, str) or not reason:
        raise pytest.UsageError(f"{item.nodeid} does not say why: @pytest.mark.sqlite_only('reason')")
    return reason


def complaint(store: str, opened: list[str], *, on_both: bool, why_not: str | None) -> str | None:
    """What is wrong with a test in which engines have opened these databases of SQLite."""
    if not opened or why_not is not None or (store == "sqlite" and on_both):
        return None
    return (
        "an engine has opened a database of SQLite by itself, so this is not tested on PostgreSQL: use `database_url`, "
        "`engine` or `environment`, or mark the test `sqlite_only` with the reason"
    )
