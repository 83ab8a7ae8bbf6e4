"""Standalone tasks as JSON: what is asked and what is answered. `args` are the task's positional arguments."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from holdfast.contract import tasks as tk
from holdfast.model.executions import WorkflowStatus
from holdfast.model.values import NULL, IfClosed, IfRunning, RetryPolicy, TaskTimeouts
from holdfast.transport.rest.bodies import Body, Instant, Limit, Name, Priority, Rejection, Seconds, null
from holdfast.transport.rest.reading import read_failure
from holdfast.transport.rest.times import instant, instant_or_none, micros, micros_or_none
from holdfast.transport.rest.views import FailureView, View, failure_view

Whole = Annotated[int, Meta(gt=-(2**62), lt=2**62, extra_json_schema={"minimum": 1})]


class RetryBody(Body, frozen=True, kw_only=True):
    """`initial_interval_s` times `backoff` for each further attempt, at most `max_interval_s`. Without `max_attempts`
    it never gives up; `non_retryable` names types of errors that fail at once."""

    initial_interval_s: float = 1.0
    backoff: float = 2.0
    max_interval_s: float = 60.0
    max_attempts: Whole | None = None
    jitter: bool = True
    non_retryable: tuple[str, ...] = ()


class StartTaskBody(Body, frozen=True, kw_only=True):
    """Run a task, or find the one with this task id that is not over. `input` is the only argument of a task that takes
    one; of others, `args` has all of them."""

    task_kind: Name
    task_id: Name | None = None
    input: Raw | UnsetType = UNSET
    args: tuple[Raw, ...] | None = None
    queue: Name = "default"
    priority_seconds: Priority = 0
    retry: RetryBody = RetryBody()
    start_to_close_seconds: Seconds = 3600.0
    schedule_to_close_seconds: Seconds | None = None
    heartbeat_timeout_seconds: Seconds | None = None
    metadata: dict[str, str] | None = None
    start_at: Instant | None = None
    if_running: IfRunning = IfRunning.USE_EXISTING
    if_closed: IfClosed = IfClosed.ALLOW
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class CompleteTaskBody(Body, frozen=True, kw_only=True):
    result: Raw = msgspec.field(default_factory=null)
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class FailTaskBody(Body, frozen=True, kw_only=True):
    """It is tried again, unless the error is `non_retryable` or its policy says no."""

    error: str | Rejection
    idempotency_key: Name | None = None
    request_id: Name | None = None
    idempotency_key_ttl_seconds: Seconds | None = None


class TasksQuery(Body, frozen=True, kw_only=True):
    """`metadata` is `key=value`; all that are given must be there."""

    status: tuple[WorkflowStatus, ...] = ()
    task_kind: Name | None = None
    queue: Name | None = None
    metadata: tuple[str, ...] = ()
    cursor: Name | None = None
    limit: Limit = 100


class StartTaskView(View, frozen=True, kw_only=True):
    """`task_created` is false if one that is not over was found."""

    workflow_execution_id: str
    task_id: str
    task_created: bool
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class StandaloneTaskView(View, frozen=True, kw_only=True):
    """Where a standalone task stands. PENDING waits for a worker or for its next attempt, WAITING for somebody who
    completes it. `attempt` is 0 before the first one, and when it was cancelled or ended from outside."""

    workflow_execution_id: str
    task_id: str
    task_kind: str
    status: WorkflowStatus
    queue: str
    priority_seconds: int
    args: tuple[Raw, ...]
    retry: RetryPolicy
    timeouts: TaskTimeouts
    metadata: dict[str, str]
    attempt: int = 0
    worker: str | None = None
    deferred: bool = False
    cancel_requested: bool = False
    progress: float | None = None
    details: Raw = msgspec.field(default_factory=null)
    last_failure: FailureView | None = None
    result: Raw = msgspec.field(default_factory=null)
    created_at: datetime
    updated_at: datetime
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    next_attempt_at: datetime | None = None
    closed_at: datetime | None = None
    successor: str | None = None


class StandaloneTaskPage(View, frozen=True, kw_only=True):
    """The newest first. Pass `next_cursor` for the page after this one; null on the last. A page before it may have
    fewer items than `limit`."""

    items: tuple[StandaloneTaskView, ...]
    next_cursor: str | None = None


class TaskResultView(View, frozen=True, kw_only=True):
    """How a standalone task ended. While it is under way, `closed` is false. `timeout` names the limit that was
    passed."""

    workflow_execution_id: str
    task_kind: str
    status: WorkflowStatus
    closed: bool
    result: Raw = msgspec.field(default_factory=null)
    failure: FailureView | None = None
    attempts: int = 0
    timeout: str = ""
    reason: str = ""


def standalone_task_view(task: tk.StandaloneTask) -> StandaloneTaskView:
    return StandaloneTaskView(
        workflow_execution_id=task.workflow_execution_id,
        task_id=task.task_id,
        task_kind=task.kind,
        status=task.status,
        queue=task.queue,
        priority_seconds=task.priority,
        args=task.args,
        retry=task.retry,
        timeouts=task.timeouts,
        metadata=task.metadata,
        attempt=task.attempt,
        worker=task.worker,
        deferred=task.deferred,
        cancel_requested=task.cancel_requested,
        progress=task.progress,
        details=NULL if task.details is None else task.details,
        last_failure=failure_view(task.last_failure),
        result=task.result,
        created_at=instant(task.created_at),
        updated_at=instant(task.updated_at),
        scheduled_at=instant_or_none(task.scheduled_at),
        started_at=instant_or_none(task.started_at),
        heartbeat_at=instant_or_none(task.heartbeat_at),
        next_attempt_at=instant_or_none(task.next_attempt_at),
        closed_at=instant_or_none(task.closed_at),
        successor=task.successor,
    )


def read_standalone_task(view: StandaloneTaskView) -> tk.StandaloneTask:
    return tk.StandaloneTask(
        workflow_execution_id=view.workflow_execution_id,
        task_id=view.task_id,
        kind=view.task_kind,
        status=view.status,
        queue=view.queue,
        priority=view.priority_seconds,
        args=view.args,
        retry=view.retry,
        timeouts=view.timeouts,
        metadata=view.metadata,
        attempt=view.attempt,
        worker=view.worker,
        deferred=view.deferred,
        cancel_requested=view.cancel_requested,
        progress=view.progress,
        details=None if bytes(view.details) == bytes(NULL) else view.details,
        last_failure=read_failure(view.last_failure),
        result=view.result,
        created_at=micros(view.created_at),
        updated_at=micros(view.updated_at),
        scheduled_at=micros_or_none(view.scheduled_at),
        started_at=micros_or_none(view.started_at),
        heartbeat_at=micros_or_none(view.heartbeat_at),
        next_attempt_at=micros_or_none(view.next_attempt_at),
        closed_at=micros_or_none(view.closed_at),
        successor=view.successor,
    )


def task_result_view(outcome: tk.TaskOutcome) -> TaskResultView:
    return TaskResultView(
        workflow_execution_id=outcome.workflow_execution_id,
        task_kind=outcome.kind,
        status=outcome.status,
        closed=True,
        result=outcome.result,
        failure=failure_view(outcome.failure),
        attempts=outcome.attempts,
        timeout=outcome.timeout,
        reason=outcome.reason,
    )


def read_task_result(view: TaskResultView) -> tk.TaskOutcome | None:
    """None while it is under way."""
    if not view.closed:
        return None
    return tk.TaskOutcome(
        workflow_execution_id=view.workflow_execution_id,
        kind=view.task_kind,
        status=view.status,
        result=view.result,
        failure=read_failure(view.failure),
        attempts=view.attempts,
        timeout=view.timeout,
        reason=view.reason,
    )


def retry_body(policy: RetryPolicy) -> RetryBody:
    return RetryBody(
        initial_interval_s=policy.initial_interval_s,
        backoff=policy.backoff,
        max_interval_s=policy.max_interval_s,
        max_attempts=policy.max_attempts,
        jitter=policy.jitter,
        non_retryable=policy.non_retryable,
    )


def read_retry(body: RetryBody) -> RetryPolicy:
    return RetryPolicy(
        initial_interval_s=body.initial_interval_s,
        backoff=body.backoff,
        max_interval_s=body.max_interval_s,
        max_attempts=body.max_attempts,
        jitter=body.jitter,
        non_retryable=body.non_retryable,
    )
