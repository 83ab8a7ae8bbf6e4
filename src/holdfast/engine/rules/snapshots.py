"""Snapshots of programs: stored with the turn they were made after, gone when the execution closes."""

from __future__ import annotations

from msgspec import structs

from holdfast.engine.rules.workspace import Workspace
from holdfast.model.commands import Turn
from holdfast.model.executions import Execution
from holdfast.model.snapshots import Snapshot


def keep_snapshot(
    ws: Workspace, execution: Execution, snapshot: Snapshot, *, recorded: bool, last: Turn | None
) -> None:
    """Store what came with a turn, in the place of the one before; one without state removes that."""
    if not execution.is_open:
        drop_snapshot(ws, execution)
    elif recorded and snapshot.state and (last is None or last.up_to == snapshot.up_to):
        ws.put(structs.replace(snapshot, org=execution.org))


def drop_snapshot(ws: Workspace, execution: Execution) -> None:
    ws.drop(Snapshot, execution.id)
