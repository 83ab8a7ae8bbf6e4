"""Snapshots as rows and back, for every store."""

from __future__ import annotations

from holdfast.model.snapshots import Snapshot
from holdfast.store.rows import Row


def snapshot_to_row(snapshot: Snapshot) -> Row:
    return (snapshot.execution_id, snapshot.up_to, snapshot.version, snapshot.build, snapshot.state)


def row_to_snapshot(row: Row) -> Snapshot:
    return Snapshot(execution_id=row[0], up_to=row[1], version=row[2], build=row[3], state=row[4])
