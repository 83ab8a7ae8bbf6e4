"""Snapshots of programs: what a batch writes of them, and what a worker reads."""

from __future__ import annotations

import sqlite3

from holdfast.model.snapshots import Snapshot
from holdfast.store.protocol import Changes
from holdfast.store.snapshot_rows import row_to_snapshot, snapshot_to_row
from holdfast.store.sqlite.statements import rows, statement

_UPSERT = rows("snapshots", "upsert")
_DELETE = rows("snapshots", "delete")
_ONE = statement("snapshots", "one")


def write_snapshots(connection: sqlite3.Connection, changes: Changes) -> None:
    _UPSERT.execute(connection, [snapshot_to_row(snapshot) for snapshot in changes.snapshots.values()])
    _DELETE.delete(connection, [(execution_id,) for execution_id in changes.dropped_snapshots])


def snapshot(connection: sqlite3.Connection, org: str, execution_id: str) -> Snapshot | None:
    row = connection.execute(_ONE, (execution_id, org)).fetchone()
    return None if row is None else row_to_snapshot(row)
