"""The public records of executions, made from their rows. Epochs and nonces stay here: they fence workers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.contract.execution_reads import (
    ExecutionInfo,
    FailureInfo,
    PendingTask,
    PendingTimer,
    StuckInfo,
    WaitingFor,
    WorkflowResult,
)
from holdfast.contract.history import entry_of
from holdfast.contract.instants import instant, instant_or_none
from holdfast.engine.rules.workspace import Outcome
from holdfast.errors import ExecutionNotFound
from holdfast.model import events as e
from holdfast.model.executions import NEVER, Execution, Ready, State, Status, StuckReason, TaskRow, TimerRow
from holdfast.model.values import NULL

WITHOUT_RESULT = frozenset({Status.FAILED, Status.TIMED_OUT, Status.TERMINATED, Status.CANCELLED})


def no_execution(org: str, execution_id: str) -> ExecutionNotFound:
    return ExecutionNotFound(
        f"no execution {execution_id!r} in org {org!r}: check the id; list_workflows() shows what there is",
        execution_id=execution_id,
    )


def execution_info(row: Execution, last: e.HistoryEvent | None = None) -> ExecutionInfo:
    """`last` is the last event of one that ended without a result."""
    status, ready = row.status, row.ready
    return ExecutionInfo(
        workflow_execution_id=row.id,
        workflow_id=row.workflow_id,
        kind=row.kind,
        version=row.version,
        queue=row.queue,
        priority=row.priority,
        status=status,
        created_at=instant(row.created_at),
        updated_at=instant(row.updated_at),
        closed_at=instant_or_none(row.closed_at),
        start_at=_start_at(row),
        history_length=row.last_seq,
        seen_length=row.seen_seq,
        signal_count=row.signal_count,
        open_tasks=row.open_tasks,
        open_timers=row.open_timers,
        open_children=row.open_children,
        open_waits=row.open_waits,
        cancel_requested=row.cancel_requested,
        waiting_for=_waits(row) if status is Status.WAITING else (),
        stuck=_stuck(row.stuck),
        failure=None if last is None else _failure(last.body),
        metadata=row.metadata or {},
        parent_execution_id=row.parent_id,
        successor=row.successor,
        worker=None if ready is None else ready.worker,
        ready_since=None if ready is None else instant(ready.since_at),
        not_before=_not_before(ready),
        crashes=row.crashes,
    )


def _not_before(ready: Ready | None) -> datetime | None:
    return instant(ready.not_before_at) if ready is not None and ready.not_before_at else None


def _start_at(row: Execution) -> datetime | None:
    """Told from a delayed retry by its past: nothing has run yet, and nothing has gone wrong."""
    ready = row.ready
    if ready is None or ready.worker is not None or not ready.not_before_at:
        return None
    if row.seen_seq or row.crashes or row.state is not State.OPEN:
        return None
    return instant(ready.not_before_at)


def _waits(row: Execution) -> tuple[WaitingFor, ...]:
    return tuple(
        WaitingFor(
            kind=wait.kind, name=wait.name, number=wait.number, line=wait.line, until=instant_or_none(wait.until_at)
        )
        for wait in row.waiting_for
    )


def _stuck(stuck: StuckReason | None) -> StuckInfo | None:
    if stuck is None:
        return None
    fields: dict[str, Any] = {name: getattr(stuck, name) for name in StuckInfo.__struct_fields__}
    return StuckInfo(**fields | {"at": instant(stuck.at)})


def _failure(end: e.EventBody) -> FailureInfo | None:
    match end:
        case e.WorkflowFailed():
            return FailureInfo(type=end.failure.type, message=end.failure.message)
        case e.WorkflowTimedOut():
            over = instant(end.expires_at).isoformat()
            return FailureInfo(type="WorkflowTimedOut", message=f"its execution timeout ended at {over}")
        case e.WorkflowTerminated():
            return FailureInfo(type="WorkflowTerminated", message=end.reason)
        case e.WorkflowCancelled():
            return FailureInfo(type="WorkflowCancelled", message=end.reason)
    return None


def workflow_result(execution_id: str, outcome: Outcome) -> WorkflowResult:
    body = outcome.last_event.body
    return WorkflowResult(
        workflow_execution_id=execution_id,
        status=outcome.status,
        closed=True,
        result=getattr(body, "result", NULL),
        failure=getattr(body, "failure", None),
        successor=getattr(body, "new_execution_id", None) or getattr(body, "successor", None),
        last_event=entry_of(outcome.last_event),
    )


def pending_task(row: TaskRow) -> PendingTask:
    return PendingTask(
        workflow_execution_id=row.execution_id,
        task_no=row.task_no,
        kind=row.kind,
        queue=row.queue,
        priority=row.priority,
        input=row.input,
        retry=row.retry,
        timeouts=row.timeouts,
        attempt=row.attempt,
        running=row.worker is not None,
        scheduled_at=instant(row.scheduled_at),
        not_before=instant(row.not_before_at) if 0 < row.not_before_at < NEVER else None,
        started_at=instant_or_none(row.started_at),
        heartbeat_at=instant_or_none(row.heartbeat_at),
        due_at=instant_or_none(row.due_at),
        details=row.details,
        progress=row.progress,
        last_failure=row.last_failure,
        deferred=row.deferred,
        output_seq=row.output_seq,
        worker=row.worker,
    )


def pending_timer(row: TimerRow) -> PendingTimer:
    return PendingTimer(
        workflow_execution_id=row.execution_id,
        timer_no=row.timer_no,
        fire_at=instant(row.fire_at),
        promise=row.promise,
    )
