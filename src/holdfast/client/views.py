"""Executions as callers see them: instants as datetimes, values decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast import errors
from holdfast.contract.executions import Outcome
from holdfast.model import events as e
from holdfast.model.executions import Execution, State, StuckReason, WorkflowStatus
from holdfast.model.payloads import decode
from holdfast.model.values import MICRO, Wait


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """One execution. `waiting_for` says what it is blocked on, `stuck` why it can't go on, `start_at` when one that was
    not to begin at once will. `successor` goes on in the place of one that is closed."""

    workflow_execution_id: str
    workflow_id: str
    kind: str
    version: str
    queue: str
    priority: int
    status: WorkflowStatus
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    history_length: int
    signal_count: int
    waiting_for: tuple[Wait, ...]
    stuck: StuckReason | None
    metadata: Mapping[str, str]
    start_at: datetime | None
    parent_execution_id: str | None
    successor: str | None


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """Newest first. Pass `next_cursor` to get the page after this one; None on the last."""

    items: tuple[ExecutionInfo, ...]
    next_cursor: str | None


def instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / MICRO, UTC)


def microseconds(when: datetime, field: str) -> int:
    if when.tzinfo is None:
        raise errors.InvalidRequest(f"{field} needs a time zone: {when!r}", field=field)
    return int(when.timestamp() * MICRO)


def view_of(execution: Execution) -> ExecutionInfo:
    return ExecutionInfo(
        workflow_execution_id=execution.id,
        workflow_id=execution.workflow_id,
        kind=execution.kind,
        version=execution.version,
        queue=execution.queue,
        priority=execution.priority,
        status=execution.status,
        created_at=instant(execution.created_at),
        updated_at=instant(execution.updated_at),
        closed_at=None if execution.closed_at is None else instant(execution.closed_at),
        history_length=execution.last_seq,
        signal_count=execution.signal_count,
        waiting_for=execution.waiting_for if execution.status is WorkflowStatus.WAITING else (),
        stuck=execution.stuck,
        metadata=dict(execution.metadata or {}),
        start_at=_start_at(execution),
        parent_execution_id=execution.parent_id,
        successor=execution.successor,
    )


def _start_at(execution: Execution) -> datetime | None:
    """Told from a delayed retry by its past: nothing has run yet, and nothing has gone wrong."""
    ready = execution.ready
    if ready is None or ready.worker is not None or not ready.not_before_at:
        return None
    if execution.seen_seq or execution.crashes or execution.state is not State.OPEN:
        return None
    return instant(ready.not_before_at)


def result_of(outcome: Outcome, result_type: Any) -> Any:
    """The result of a closed execution, or the error that says how it ended."""
    body = outcome.last_event.body
    match body:
        case e.WorkflowCompleted():
            return decode(body.result, result_type, field="result")
        case e.WorkflowFailed():
            failure = body.failure
            raise errors.WorkflowFailed(
                f"{failure.type}: {failure.message}",
                error_type=failure.type,
                traceback=failure.traceback,
                failure=failure,
            )
        case e.WorkflowCancelled():
            raise errors.WorkflowCancelled(f"the workflow was cancelled{_because(body.reason)}", reason=body.reason)
        case e.WorkflowTerminated():
            raise errors.WorkflowTerminated(f"the workflow was terminated{_because(body.reason)}", reason=body.reason)
        case e.WorkflowTimedOut():
            ended = instant(body.expires_at)
            raise errors.WorkflowTimedOut(
                f"the workflow was not done within its execution timeout, which ended at {ended.isoformat()}",
                expires_at=ended,
            )
    raise errors.ExecutionOutcome(f"the execution ended with {body.TYPE}")


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
