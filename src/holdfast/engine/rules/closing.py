"""Ending an execution: nothing of it may outlive it, except the children that may."""

from __future__ import annotations

from typing import Final

from holdfast.contract.workers import ExecutionEnded
from holdfast.engine.rules.children import tell_parent
from holdfast.engine.rules.leases import let_go, new_token, tell_holder
from holdfast.engine.rules.snapshots import drop_snapshot
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.events import EventBody
from holdfast.model.executions import DeadLetter, Execution, State

CLOSED: Final = "closed_before_read"
"""Why most dead letters are dead."""


def close(ws: Workspace, execution: Execution, state: State, body: EventBody, *, successor: str | None = None) -> None:
    """Append the last event, drop tasks, timers and the ready row, and tell those who wait for the end.

    A `successor` goes on in its place: the parent hears nothing, it waits for that one.
    """
    event = ws.append(execution, body)
    execution.state = state
    execution.closed_at = event.at
    execution.waiting_for = ()
    execution.stuck = None
    execution.successor = successor
    ws.changes.turned.add(execution.id)
    if execution.ready is not None:
        let_go(ws, execution)
    if execution.open_tasks or execution.open_timers:
        _drop_rows(ws, execution)
    if execution.open_waits:
        drop_waits(ws, execution)
    if execution.open_children:
        # What becomes of them is decided page by page, see run_due.
        ws.expect(ws.now)
    if execution.parent_id is not None and successor is None:
        tell_parent(ws, execution, body)
    ws.close_outcome(execution, event)


def end_from_outside(
    ws: Workspace, execution: Execution, state: State, body: EventBody, *, successor: str | None = None
) -> None:
    """Close it without asking its program. Whoever runs it is told, and can commit nothing more.

    What no turn has seen becomes a dead letter. What was seen and not read only the program knows, see `bury_unread`.
    """
    tell_holder(ws, execution)
    if successor is None:
        bury_unread(ws, execution, (), execution.seen_seq)
    close(ws, execution, state, body, successor=successor)
    new_token(ws, execution)
    # Whether it has one is not known here. A program that ends by itself says so with its last turn.
    drop_snapshot(ws, execution)


def _drop_rows(ws: Workspace, execution: Execution) -> None:
    for key in [key for key in ws.loaded.tasks if key[0] == execution.id]:
        ws.loaded.tasks.pop(key)
        ws.changes.changed_tasks.pop(key, None)
    # Rows made in this batch must not be written after the purge.
    ws.changes.new_tasks = [task for task in ws.changes.new_tasks if task.execution_id != execution.id]
    ws.changes.new_timers = [timer for timer in ws.changes.new_timers if timer.execution_id != execution.id]
    ws.changes.purge.append(execution.id)
    # Sessions of other processes learn it from their next heartbeat.
    ws.work.extend((session, ExecutionEnded(execution.id)) for session in ws.place.local_sessions())
    execution.open_tasks = execution.open_timers = 0


def drop_waits(ws: Workspace, execution: Execution) -> None:
    """It waits for nothing more."""
    for key in [key for key in ws.loaded.waits if key[0] == execution.id]:
        ws.loaded.subscriptions.pop(ws.loaded.waits.pop(key), None)
    for row in [row for row in ws.changes.new_subscriptions.values() if row.execution_id == execution.id]:
        del ws.changes.new_subscriptions[row.id]
    ws.changes.purge_waits.append(execution.id)
    execution.open_waits = 0


def bury_unread(ws: Workspace, execution: Execution, seqs: tuple[int, ...], seen: int) -> None:
    """Signals the program never read become dead letters: those it saw and left, and those after `seen`."""
    for seq in seqs:
        bury(ws, execution, seq, CLOSED)
    if execution.call_seq > seen:
        ws.changes.bury.append((execution.id, seen, CLOSED))


def bury(ws: Workspace, execution: Execution, seq: int, reason: str) -> None:
    """One signal becomes a dead letter."""
    ws.changes.dead_letters.append(
        DeadLetter(execution_id=execution.id, seq=seq, org=execution.org, reason=reason, at=ws.now)
    )
