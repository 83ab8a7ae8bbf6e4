"""Standalone tasks: a task run durably without a workflow. See model.standalone for what they are.

Wherever one is named, its execution id does, and so does its task id: then the open one is meant, or the last.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from holdfast.contract.executions import Changed, StartAnswer
from holdfast.contract.messages import SettleAnswer
from holdfast.model.executions import WorkflowStatus
from holdfast.model.values import (
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    NULL,
    Failure,
    IfClosed,
    IfRunning,
    RetryPolicy,
    TaskTimeouts,
)


class StartTask(msgspec.Struct, frozen=True, kw_only=True):
    """Run a task, or find the open one that has this task id. Fields as in StartWorkflow and in TaskRow."""

    org: str
    kind: str
    task_id: str | None = None
    args: tuple[Raw, ...] = ()
    queue: str = "default"
    priority: int = 0
    retry: RetryPolicy = DEFAULT_TASK_RETRY
    timeouts: TaskTimeouts = DEFAULT_TIMEOUTS
    metadata: dict[str, str] | None = None
    start_at: int | None = None
    if_running: IfRunning = IfRunning.USE_EXISTING
    if_closed: IfClosed = IfClosed.ALLOW
    ttl_s: float | None = None
    request_id: str | None = None


class SettleTask(msgspec.Struct, frozen=True, kw_only=True):
    """Complete the attempt that was left to somebody else, or fail it if there is a `failure`."""

    org: str
    task_id: str
    value: Raw = NULL
    failure: Failure | None = None
    request_id: str | None = None
    ttl_s: float | None = None


class CancelTask(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    task_id: str
    reason: str = ""


class ListTasks(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    statuses: tuple[WorkflowStatus, ...] = ()
    kind: str | None = None
    queue: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    cursor: str | None = None
    limit: int = 100


class StandaloneTask(msgspec.Struct, frozen=True, kw_only=True):
    """Where a standalone task stands.

    PENDING waits for a worker, or for its next attempt; RUNNING has one; WAITING was left to somebody else by
    `complete_later`. `attempt` is 0 before the first one, and unknown (0) once it was cancelled or ended from outside.
    `worker` has the running attempt, or had the last. `last_failure` says why it is not at its first attempt any more,
    or how it ended.
    """

    workflow_execution_id: str
    task_id: str
    kind: str
    status: WorkflowStatus
    queue: str
    priority: int
    args: tuple[Raw, ...]
    retry: RetryPolicy
    timeouts: TaskTimeouts
    metadata: dict[str, str]
    created_at: int
    updated_at: int
    attempt: int = 0
    worker: str | None = None
    deferred: bool = False
    cancel_requested: bool = False
    progress: float | None = None
    details: Raw | None = None
    last_failure: Failure | None = None
    result: Raw = NULL
    scheduled_at: int | None = None
    started_at: int | None = None
    heartbeat_at: int | None = None
    next_attempt_at: int | None = None
    closed_at: int | None = None
    successor: str | None = None


class TaskPage(msgspec.Struct, frozen=True):
    """Newest first. `next_cursor` is None on the last page; a page before it may have fewer items than asked for."""

    items: tuple[StandaloneTask, ...]
    next_cursor: str | None = None


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a standalone task ended. `timeout` names the limit that was passed, if it failed for that."""

    workflow_execution_id: str
    kind: str
    status: WorkflowStatus
    result: Raw = NULL
    failure: Failure | None = None
    attempts: int = 0
    timeout: str = ""
    reason: str = ""


class Tasks(Protocol):
    """`using`: see `contract.executions.Executions`."""

    def start(self, request: StartTask, using: Any = None) -> Awaitable[StartAnswer]: ...

    def get(self, org: str, task_id: str) -> Awaitable[StandaloneTask]: ...

    def outcome(self, org: str, task_id: str) -> Awaitable[TaskOutcome]:
        """Waits until it is closed; if another execution goes on in its place, until that one is."""
        ...

    def settle(self, request: SettleTask) -> Awaitable[SettleAnswer]: ...

    def cancel(self, request: CancelTask) -> Awaitable[Changed]: ...

    # Last, so that `list` means the type in the annotations above.
    def list(self, request: ListTasks) -> Awaitable[TaskPage]: ...
