"""Pauses: what a batch loads and writes of them, and what callers read. The lock of a pause is its org's row."""

from __future__ import annotations

from holdfast.model.pauses import Pause
from holdfast.store.pause_rows import key_to_row, pause_to_row, row_to_pause
from holdfast.store.postgres.statements import Connection, columns, statement
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes, Loaded, LoadPlan

_UPSERT = statement("pauses", "upsert")
_DELETE = statement("pauses", "delete")
_FORGET_WORKERS = statement("pauses", "forget_workers")
_BY_KEY = statement("pauses", "by_key")
_ALL = statement("pauses", "all")


async def load_pauses(connection: Connection, plan: LoadPlan, loaded: Loaded) -> None:
    wanted = columns(sorted(key_to_row(key) for key in plan.pauses), 3)
    for row in await connection.fetch(_BY_KEY, *wanted):
        pause = row_to_pause(row)
        loaded.pauses[pause.key] = pause


def write_pauses(writing: Writing, changes: Changes) -> None:
    deleted = [key_to_row(key) for key in changes.deleted_pauses]
    writing.rows(_DELETE, deleted)
    writing.rows(_UPSERT, [pause_to_row(pause) for _, pause in sorted(changes.pauses.items())], after=bool(deleted))
    writing.keys(_FORGET_WORKERS, sorted(changes.deleted_workers), after=bool(changes.pauses))


async def pauses(connection: Connection) -> list[Pause]:
    return [row_to_pause(row) for row in await connection.fetch(_ALL)]
