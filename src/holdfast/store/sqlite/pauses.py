"""Pauses: what a batch loads and writes of them, and what callers read."""

from __future__ import annotations

import sqlite3

from holdfast.model.pauses import Pause
from holdfast.store.pause_rows import key_to_row, pause_to_row, row_to_pause
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from holdfast.store.sqlite.statements import rows, statement

_UPSERT = rows("pauses", "upsert")
_DELETE = rows("pauses", "delete")
_FORGET_WORKERS = rows("pauses", "forget_workers")
_BY_KEY = rows("pauses", "by_key")
_ALL = statement("pauses", "all")


def load_pauses(connection: sqlite3.Connection, plan: LoadPlan, loaded: Loaded) -> None:
    for row in _BY_KEY.fetch(connection, sorted(key_to_row(key) for key in plan.pauses)):
        pause = row_to_pause(row)
        loaded.pauses[pause.key] = pause


def write_pauses(connection: sqlite3.Connection, changes: Changes) -> None:
    _DELETE.delete(connection, [key_to_row(key) for key in changes.deleted_pauses])
    _UPSERT.execute(connection, [pause_to_row(pause) for pause in changes.pauses.values()])
    if changes.deleted_workers:
        _FORGET_WORKERS.delete(connection, [(worker,) for worker in changes.deleted_workers])


def pauses(connection: sqlite3.Connection) -> list[Pause]:
    return [row_to_pause(row) for row in connection.execute(_ALL).fetchall()]
