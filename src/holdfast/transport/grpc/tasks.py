"""Standalone tasks: messages to the contract's requests, answers to messages. As in `dispatch`."""

from __future__ import annotations

import math
from typing import Any

from holdfast.contract import executions as ex
from holdfast.contract import tasks as tk
from holdfast.contract.messages import SettleAnswer
from holdfast.errors import InvalidRequest
from holdfast.model.executions import WorkflowStatus
from holdfast.model.validation import check_text
from holdfast.model.values import (
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    TEN_YEARS_S,
    Failure,
    IfClosed,
    IfRunning,
    RetryPolicy,
    TaskTimeouts,
)
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc.fields import DEFAULT_QUEUE, FAR, choice, given, instant
from holdfast.transport.grpc.payloads import payload, payload_bytes

FAILED = "TaskFailed"


# --- asked ---


def start(message: pb.StartTaskRequest, org: str, request_id: str | None) -> tk.StartTask:
    return tk.StartTask(
        org=org,
        kind=message.task_kind,
        task_id=message.task_id or None,
        args=tuple(payload(data, "args") for data in message.args),
        queue=message.queue or DEFAULT_QUEUE,
        priority=message.priority_seconds,
        retry=_retry(message.retry) if message.HasField("retry") else DEFAULT_TASK_RETRY,
        timeouts=_timeouts(message),
        metadata=dict(message.metadata) or None,
        start_at=instant(given(message, "start_at"), "start_at"),
        if_running=choice(message.if_running or IfRunning.USE_EXISTING, IfRunning, "if_running"),
        if_closed=choice(message.if_closed or IfClosed.ALLOW, IfClosed, "if_closed"),
        ttl_s=given(message, "idempotency_key_ttl_seconds"),
        request_id=request_id,
    )


def _retry(message: pb.RetryPolicy) -> RetryPolicy:
    """Checked here, so that what is wrong has the message's own name."""
    for field, most in (
        ("initial_interval_seconds", TEN_YEARS_S),
        ("max_interval_seconds", TEN_YEARS_S),
        ("backoff", math.inf),
    ):
        number = given(message, field)
        if number is not None and not (math.isfinite(number) and 0 <= number <= most):
            raise InvalidRequest(f"retry.{field} must lie between 0 and {most:g}, not {number}", field=f"retry.{field}")
    attempts = given(message, "max_attempts")
    if attempts is not None and not 1 <= attempts < FAR:
        raise InvalidRequest(f"retry.max_attempts must be at least 1, not {attempts}", field="retry.max_attempts")
    usual = DEFAULT_TASK_RETRY
    return RetryPolicy(
        initial_interval_s=_or(given(message, "initial_interval_seconds"), usual.initial_interval_s),
        backoff=_or(given(message, "backoff"), usual.backoff),
        max_interval_s=_or(given(message, "max_interval_seconds"), usual.max_interval_s),
        max_attempts=attempts,
        jitter=_or(given(message, "jitter"), usual.jitter),
        non_retryable=tuple(message.non_retryable),
    )


def _timeouts(message: pb.StartTaskRequest) -> TaskTimeouts:
    return TaskTimeouts(
        start_to_close_s=_or(given(message, "start_to_close_seconds"), DEFAULT_TIMEOUTS.start_to_close_s),
        schedule_to_close_s=given(message, "schedule_to_close_seconds"),
        heartbeat_s=given(message, "heartbeat_timeout_seconds"),
    )


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def task_id(message: Any) -> str:
    """Either of its ids."""
    return message.workflow_execution_id or message.task_id  # type: ignore[no-any-return]


def complete(message: pb.CompleteTaskRequest, org: str, request_id: str | None) -> tk.SettleTask:
    return tk.SettleTask(
        org=org,
        task_id=task_id(message),
        value=payload(message.result, "result"),
        request_id=given(message, "idempotency_key") or request_id,
        ttl_s=given(message, "idempotency_key_ttl_seconds"),
    )


def fail(message: pb.FailTaskRequest, org: str, request_id: str | None) -> tk.SettleTask:
    for field in ("error", "error_type"):
        check_text(getattr(message, field), field)
    failure = Failure(type=message.error_type or FAILED, message=message.error, non_retryable=message.non_retryable)
    return tk.SettleTask(
        org=org,
        task_id=task_id(message),
        failure=failure,
        request_id=given(message, "idempotency_key") or request_id,
        ttl_s=given(message, "idempotency_key_ttl_seconds"),
    )


def list_request(message: pb.ListTasksRequest, org: str) -> tk.ListTasks:
    return tk.ListTasks(
        org=org,
        statuses=tuple(choice(status, WorkflowStatus, "statuses") for status in message.statuses),
        kind=message.task_kind or None,
        queue=message.queue or None,
        metadata=tuple(sorted(message.metadata.items())),
        cursor=message.cursor or None,
        limit=message.limit or 100,
    )


# --- answered ---


def started(answer: ex.StartAnswer) -> pb.StartTaskResponse:
    return pb.StartTaskResponse(
        workflow_execution_id=answer.workflow_execution_id,
        task_id=answer.workflow_id,
        task_created=answer.workflow_created,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def completed(answer: SettleAnswer) -> pb.CompleteTaskResponse:
    return pb.CompleteTaskResponse(
        idempotency_key_used=answer.idempotency_key_used, idempotency_key_new=answer.idempotency_key_new
    )


def failed(answer: SettleAnswer) -> pb.FailTaskResponse:
    return pb.FailTaskResponse(
        idempotency_key_used=answer.idempotency_key_used, idempotency_key_new=answer.idempotency_key_new
    )


def task(found: tk.StandaloneTask) -> pb.StandaloneTask:
    failure = found.last_failure
    return pb.StandaloneTask(
        workflow_execution_id=found.workflow_execution_id,
        task_id=found.task_id,
        task_kind=found.kind,
        status=found.status,
        queue=found.queue,
        priority_seconds=found.priority,
        args=[payload_bytes(value) for value in found.args],
        metadata=found.metadata,
        retry=_policy(found.retry),
        start_to_close_seconds=found.timeouts.start_to_close_s,
        schedule_to_close_seconds=found.timeouts.schedule_to_close_s,
        heartbeat_timeout_seconds=found.timeouts.heartbeat_s,
        created_at=found.created_at,
        updated_at=found.updated_at,
        attempt=found.attempt,
        worker=found.worker or "",
        deferred=found.deferred,
        cancel_requested=found.cancel_requested,
        progress=found.progress,
        details=None if found.details is None else payload_bytes(found.details),
        error_type="" if failure is None else failure.type,
        error="" if failure is None else failure.message,
        result=payload_bytes(found.result),
        scheduled_at=found.scheduled_at,
        started_at=found.started_at,
        heartbeat_at=found.heartbeat_at,
        next_attempt_at=found.next_attempt_at,
        closed_at=found.closed_at,
        successor=found.successor or "",
    )


def _policy(policy: RetryPolicy) -> pb.RetryPolicy:
    return pb.RetryPolicy(
        initial_interval_seconds=policy.initial_interval_s,
        backoff=policy.backoff,
        max_interval_seconds=policy.max_interval_s,
        max_attempts=policy.max_attempts,
        jitter=policy.jitter,
        non_retryable=policy.non_retryable,
    )
