"""A standalone task as callers see it, told from its execution, its events and its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.contract.tasks import StandaloneTask
from holdfast.errors import TaskNotFound
from holdfast.model import events as e
from holdfast.model.executions import NEVER, Execution, TaskRow, WorkflowStatus
from holdfast.model.standalone import KIND_TAG, TASK_NO, TASK_WORKFLOW, TaskOrder
from holdfast.model.values import NULL, Failure

TOLD_BY: Final = (
    e.WorkflowStarted.TYPE,
    e.TaskScheduled.TYPE,
    e.TaskCompleted.TYPE,
    e.TaskFailed.TYPE,
    e.WorkflowFailed.TYPE,
)
"""The events that say all there is to say about one."""
UNDER_WAY: Final = frozenset({WorkflowStatus.PENDING, WorkflowStatus.RUNNING, WorkflowStatus.WAITING})
"""Of these the status of the execution does not tell which one the task has: it waits while its task runs."""

_read_order: Final = msgspec.json.Decoder(TaskOrder).decode


def no_task(task_id: str, org: str) -> TaskNotFound:
    return TaskNotFound(
        f"no standalone task {task_id!r} in org {org!r}: check the id; list_tasks() shows what there is",
        task_id=task_id,
    )


def is_task(execution: Execution | None, org: str) -> bool:
    return execution is not None and execution.org == org and execution.kind == TASK_WORKFLOW


def out_of_time(timeouts_s: float | None) -> Failure:
    """What a task has failed with whose execution was ended at its deadline."""
    return Failure(
        type="TimeoutError", message=f"schedule_to_close of {timeouts_s} s passed", code="schedule_to_close_timeout"
    )


def order_of(events: Sequence[e.HistoryEvent]) -> TaskOrder:
    started = events[0].body
    assert isinstance(started, e.WorkflowStarted), "every history begins so"
    return _read_order(started.input)


def describe_task(execution: Execution, events: Sequence[e.HistoryEvent], row: TaskRow | None) -> StandaloneTask:
    """`events` are those of TOLD_BY; `row` is its task, while it is not finished."""
    order = order_of(events)
    scheduled = next((event for event in events if isinstance(event.body, e.TaskScheduled)), None)
    last = events[-1].body
    ended = next(
        (event.body for event in reversed(events) if isinstance(event.body, e.TaskCompleted | e.TaskFailed)), None
    )
    completed = execution.status is WorkflowStatus.COMPLETED and isinstance(ended, e.TaskCompleted)
    return StandaloneTask(
        workflow_execution_id=execution.id,
        task_id=execution.workflow_id,
        kind=order.kind,
        status=_status(execution, row, scheduled is not None),
        queue=execution.queue,
        priority=order.priority,
        args=order.args,
        retry=order.retry,
        timeouts=order.timeouts,
        metadata={key: value for key, value in (execution.metadata or {}).items() if key != KIND_TAG},
        created_at=execution.created_at,
        updated_at=execution.updated_at,
        attempt=row.attempt if row is not None else ended.attempt if ended is not None else 0,
        worker=row.worker if row is not None else (ended.worker or None) if ended is not None else None,
        deferred=row is not None and row.deferred,
        cancel_requested=execution.cancel_requested,
        progress=None if row is None else row.progress,
        details=None if row is None else row.details,
        last_failure=_failure(execution, order, row, ended, last),
        result=ended.result if completed and isinstance(ended, e.TaskCompleted) else NULL,
        scheduled_at=None if scheduled is None else scheduled.at,
        started_at=None if row is None else row.started_at,
        heartbeat_at=None if row is None else row.heartbeat_at,
        next_attempt_at=_next_attempt_at(execution, row),
        closed_at=execution.closed_at,
        successor=execution.successor,
    )


def _status(execution: Execution, row: TaskRow | None, scheduled: bool) -> WorkflowStatus:
    if execution.status not in UNDER_WAY:
        return execution.status
    if row is None:
        # Not asked for yet; or over, which the program is about to be told.
        return WorkflowStatus.RUNNING if scheduled else WorkflowStatus.PENDING
    if row.worker is not None:
        return WorkflowStatus.RUNNING
    return WorkflowStatus.WAITING if row.deferred else WorkflowStatus.PENDING


def _failure(
    execution: Execution, order: TaskOrder, row: TaskRow | None, ended: e.EventBody | None, last: e.EventBody
) -> Failure | None:
    if row is not None:
        return row.last_failure
    if isinstance(ended, e.TaskFailed):
        return ended.failure
    if execution.status is WorkflowStatus.TIMED_OUT:
        return out_of_time(order.timeouts.schedule_to_close_s)
    return last.failure if isinstance(last, e.WorkflowFailed) else None


def _next_attempt_at(execution: Execution, row: TaskRow | None) -> int | None:
    """When it is next tried, if that was put off: after a failure, or because it was to begin later."""
    if row is not None:
        return row.not_before_at if 0 < row.not_before_at < NEVER else None
    ready = execution.ready
    waits = ready is not None and ready.worker is None and ready.not_before_at and not execution.seen_seq
    return ready.not_before_at if waits and ready is not None else None


def task_key(execution_id: str) -> tuple[str, int]:
    return execution_id, TASK_NO
