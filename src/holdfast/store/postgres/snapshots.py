"""Snapshots of programs: what a batch writes of them, and what a worker reads."""

from __future__ import annotations

from holdfast.model.snapshots import Snapshot
from holdfast.store.postgres.planning import by_keys
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes
from holdfast.store.snapshot_rows import row_to_snapshot, snapshot_to_row

_UPSERT = statement("snapshots", "upsert")
_DELETE = statement("snapshots", "delete")
_ONE = statement("snapshots", "one")


def write_snapshots(writing: Writing, changes: Changes) -> None:
    writing.rows(_UPSERT, [snapshot_to_row(snapshot) for snapshot in changes.snapshots.values()])
    writing.keys(_DELETE, changes.dropped_snapshots)


@by_keys
async def snapshot(connection: Connection, org: str, execution_id: str) -> Snapshot | None:
    row = await connection.fetchrow(_ONE, org, execution_id)
    return None if row is None else row_to_snapshot(row)
