"""Programs that are rebuilt from what is stored: from a snapshot and the events after it, or from event 1.

A snapshot that does not fit is never the end of an execution: it is logged, and the program is rebuilt from event 1.
"""

from __future__ import annotations

from typing import Final

from holdfast.contract.workers import LoadedHistory
from holdfast.errors import ProgramError, SnapshotMismatch
from holdfast.model.snapshots import SNAPSHOT_BYTES, Snapshot
from holdfast.replay.definition import Definition
from holdfast.replay.machine import Machine
from holdfast.worker.host import Host, log

MOST_TOLD: Final = 1_000
_TOLD: Final[set[str]] = set()
"""Executions whose snapshots are too large, of which the log knows."""


async def read_past(host: Host, definition: Definition, execution_id: str, *, from_start: bool) -> LoadedHistory:
    """What its program is rebuilt from. One whose definition makes no snapshots costs no look for one."""
    if definition.snapshots and not from_start:
        return await host.workers.load(host.org, execution_id)
    return LoadedHistory(None, await host.workers.history(host.org, execution_id))


def recreate(machine: Machine, definition: Definition, past: LoadedHistory) -> None:
    """Bring a new machine to where the past ends. Raises SnapshotMismatch if the past has to be read from event 1."""
    snapshot = past.snapshot
    if snapshot is None:
        machine.replay(past.events)
        return
    if snapshot.version != definition.version:
        raise SnapshotMismatch(f"version {snapshot.version!r} has made it, and {definition.version!r} is to go on")
    try:
        machine.restore(snapshot, past.events)
    except ProgramError as error:
        raise SnapshotMismatch(f"what is recorded after it can't be repeated: {error}") from error


def log_mismatch(execution_id: str, snapshot: Snapshot | None, mismatch: SnapshotMismatch) -> None:
    assert snapshot is not None, "without a snapshot nothing can be wrong with it"
    log.warning(
        "the snapshot of execution %s, made after event %d by build %s, is not used: %s. The program is rebuilt from "
        "event 1",
        execution_id,
        snapshot.up_to,
        snapshot.build,
        mismatch,
    )


def snapshot_of(machine: Machine, definition: Definition, execution_id: str) -> Snapshot | None:
    """What to store with a turn; one without state if the program has ended. None if there is nothing newer."""
    if not definition.snapshots or (not machine.ended and machine.up_to <= machine.stored_up_to):
        return None
    state = b"" if machine.ended else machine.snapshot()
    if state is None:
        return None
    if len(state) > SNAPSHOT_BYTES:
        _tell_too_large(execution_id, len(state))
        return None
    return Snapshot(
        execution_id=execution_id,
        up_to=machine.up_to,
        version=definition.version,
        build=definition.build,
        state=state,
    )


def _tell_too_large(execution_id: str, size: int) -> None:
    """Once for an execution, as long as few have this trouble."""
    if execution_id in _TOLD:
        return
    if len(_TOLD) >= MOST_TOLD:
        _TOLD.clear()
    _TOLD.add(execution_id)
    log.warning(
        "the program of execution %s has a snapshot of %d bytes, and %d are the most: it is not stored, and rebuilding "
        "the program takes longer and longer",
        execution_id,
        size,
        SNAPSHOT_BYTES,
    )
