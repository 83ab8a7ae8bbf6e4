"""Parents and children: what one learns of the other's end.

A child begins in the transaction that records its parent's wish, and its end is told in the transaction that closes it:
there is never a child without its parent's event, nor an end told twice. What becomes of open children when the parent
closes is decided afterwards, page by page: until then the closed parent's `open_children` stays above 0.
"""

from __future__ import annotations

from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model import events as e
from holdfast.model.executions import Execution, State
from holdfast.model.values import Failure, ParentClose

_STATUS = {
    e.WorkflowFailed: "failed",
    e.WorkflowCancelled: "cancelled",
    e.WorkflowTerminated: "terminated",
    e.WorkflowTimedOut: "timed_out",
}


def notify_parent(uow: UnitOfWork, child: Execution, end: e.EventBody) -> None:
    """The child has closed. A closed parent does not hear of it any more, but no longer has to care for it."""
    assert child.parent_id is not None, "only children have somebody to tell"
    uow.loaded.children.pop((child.parent_id, child.child_no), None)
    parent = uow.loaded.executions.get(child.parent_id)
    if parent is None:
        return
    release(uow, parent, child)
    if parent.is_open:
        uow.append(parent, outcome(child.child_no, child.id, end))
        wake(uow, parent)


def outcome(child_no: int, child_id: str, end: e.EventBody) -> e.ChildCompleted | e.ChildFailed:
    """A child's last event as its parent's history tells it."""
    if isinstance(end, e.WorkflowCompleted):
        return e.ChildCompleted(child_no=child_no, child_execution_id=child_id, result=end.result)
    status = _STATUS[type(end)]
    if isinstance(end, e.WorkflowFailed):
        failure = end.failure
    else:
        reason = getattr(end, "reason", "")
        failure = Failure(type=type(end).__name__, message=reason or f"the child was {status.replace('_', ' ')}")
    return e.ChildFailed(child_no=child_no, child_execution_id=child_id, status=status, failure=failure)


def not_started(child_no: int, child_id: str, failure: Failure) -> e.ChildFailed:
    return e.ChildFailed(child_no=child_no, child_execution_id=child_id, status="not_started", failure=failure)


def bind(uow: UnitOfWork, parent: Execution, child: Execution) -> None:
    """From now on the parent hears of the child's end, and the child's fate hangs on the parent's unless it was
    abandoned from the start."""
    assert child.parent_id == parent.id, "bound to the parent it names"
    uow.loaded.children[parent.id, child.child_no] = child.id
    if child.on_parent_close != ParentClose.ABANDON:
        parent.open_children += 1
        uow.touch(parent)


def release(uow: UnitOfWork, parent: Execution, child: Execution) -> None:
    """The child's fate no longer hangs on the parent's."""
    if child.on_parent_close != ParentClose.ABANDON:
        child.on_parent_close = ParentClose.ABANDON
        parent.open_children -= 1
        uow.touch(parent)
        uow.mark_state_changed(child)


def request_cancel(uow: UnitOfWork, execution: Execution, reason: str) -> bool:
    """Ask an open execution to cancel; whether it had not been asked before."""
    if not execution.is_open or execution.cancel_requested:
        return False
    event = uow.append(execution, e.CancelRequested(reason=reason))
    execution.cancel_requested = True
    execution.call_seq = event.seq
    if execution.ready is not None and _is_to_start(execution):
        # It need not wait for its time any more.
        execution.ready.not_before_at = 0
        uow.touch_ready(execution)
        uow.note_due(uow.now)
    wake(uow, execution)
    return True


def _is_to_start(execution: Execution) -> bool:
    """Whether it was to begin later, and is not a stuck or crashed one that waits for its next try."""
    return (
        execution.ready is not None
        and execution.ready.worker is None
        and execution.seen_seq == 0
        and execution.state is State.OPEN
        and not execution.crashes
    )


def parent_close_action(parent: Execution, child: Execution) -> ParentClose:
    """What is to become of an open child of a closed parent."""
    policy = ParentClose(child.on_parent_close or ParentClose.ABANDON)
    if policy is not ParentClose.DEFAULT:
        return policy
    return ParentClose.ABANDON if parent.state in {State.COMPLETED, State.CONTINUED} else ParentClose.CANCEL
