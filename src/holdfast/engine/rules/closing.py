"""Ending an execution: nothing of it may outlive it, except the children that may."""

from __future__ import annotations

from typing import Final

from holdfast.contract.workers import ExecutionEnded
from holdfast.engine.rules.children import notify_parent
from holdfast.engine.rules.leases import new_token, notify_holder, release_lease
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import EventBody
from holdfast.model.executions import DeadLetter, Execution, State

CLOSED: Final = "closed_before_read"
"""Why most dead letters are dead."""


def close(
    uow: UnitOfWork, execution: Execution, state: State, body: EventBody, *, successor: str | None = None
) -> None:
    """Append the last event, drop tasks, timers and the ready row, and tell those who wait for the end.

    A `successor` goes on in its place: the parent hears nothing, it waits for that one.
    """
    event = uow.append(execution, body)
    execution.state = state
    execution.closed_at = event.at
    execution.waiting_for = ()
    execution.stuck = None
    execution.successor = successor
    uow.changes.state_changed.add(execution.id)
    if execution.ready is not None:
        release_lease(uow, execution)
    if execution.open_tasks or execution.open_timers:
        _drop_rows(uow, execution)
    if execution.open_waits:
        drop_waits(uow, execution)
    if execution.open_children:
        # What becomes of them is decided page by page, see run_due.
        uow.note_due(uow.now)
    if execution.parent_id is not None and successor is None:
        notify_parent(uow, execution, body)
    uow.close_outcome(execution, event)


def close_externally(
    uow: UnitOfWork, execution: Execution, state: State, body: EventBody, *, successor: str | None = None
) -> None:
    """Close it without asking its program. Whoever runs it is told, and can commit nothing more.

    What no turn has seen becomes a dead letter. What was seen and not read only the program knows, see
    `dead_letter_unread`.
    """
    notify_holder(uow, execution)
    if successor is None:
        dead_letter_unread(uow, execution, (), execution.seen_seq)
    close(uow, execution, state, body, successor=successor)
    new_token(uow, execution)


def _drop_rows(uow: UnitOfWork, execution: Execution) -> None:
    for key in [key for key in uow.loaded.tasks if key[0] == execution.id]:
        uow.loaded.tasks.pop(key)
        uow.changes.changed_tasks.pop(key, None)
    # Rows made in this batch must not be written after the purge.
    uow.changes.new_tasks = [task for task in uow.changes.new_tasks if task.execution_id != execution.id]
    uow.changes.new_timers = [timer for timer in uow.changes.new_timers if timer.execution_id != execution.id]
    uow.changes.purge.append(execution.id)
    # Sessions of other processes learn it from their next heartbeat.
    uow.work.extend((session, ExecutionEnded(execution.id)) for session in uow.place.local_sessions())
    execution.open_tasks = execution.open_timers = 0


def drop_waits(uow: UnitOfWork, execution: Execution) -> None:
    """It waits for nothing more."""
    for key in [key for key in uow.loaded.waits if key[0] == execution.id]:
        uow.loaded.subscriptions.pop(uow.loaded.waits.pop(key), None)
    for row in [row for row in uow.changes.new_subscriptions.values() if row.execution_id == execution.id]:
        del uow.changes.new_subscriptions[row.id]
    uow.changes.purge_waits.append(execution.id)
    execution.open_waits = 0


def dead_letter_unread(uow: UnitOfWork, execution: Execution, seqs: tuple[int, ...], seen: int) -> None:
    """Signals the program never read become dead letters: those it saw and left, and those after `seen`."""
    for seq in seqs:
        dead_letter(uow, execution, seq, CLOSED)
    if execution.call_seq > seen:
        uow.changes.dead_letter.append((execution.id, seen, CLOSED))


def dead_letter(uow: UnitOfWork, execution: Execution, seq: int, reason: str) -> None:
    """One signal becomes a dead letter."""
    uow.changes.dead_letters.append(
        DeadLetter(execution_id=execution.id, seq=seq, org=execution.org, reason=reason, at=uow.now)
    )
