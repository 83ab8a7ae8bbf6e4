"""Standalone tasks as an application starts and follows them: a task run durably without a workflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import structs

from holdfast import errors
from holdfast.client.options import choice, start_instant, statuses, tags
from holdfast.client.promises import SettledPromise, failure_from, key_of, settled_promise, ttl_of
from holdfast.client.task_output import TaskOutput, TaskOutputs, TaskUpdate
from holdfast.client.views import instant
from holdfast.contract import tasks as tk
from holdfast.frontends.python.definitions import Duration, TaskDefinition, task_definition, task_timeouts
from holdfast.model.executions import WorkflowStatus
from holdfast.model.payloads import decode, encode, split_args
from holdfast.model.standalone import TASK_NO
from holdfast.model.values import (
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    Failure,
    IfClosed,
    IfRunning,
    RetryPolicy,
    TaskTimeouts,
)

AnyTask = str | Callable[..., Any]
"""A function made with @task, or a task kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneTaskInfo:
    """Where a standalone task stands.

    PENDING waits for a worker, or for its next attempt at `next_attempt_at`; RUNNING has one; WAITING was left to
    somebody else by `complete_later`. `attempt` is 0 before the first one, and when it was cancelled or ended from
    outside. `worker` has the running attempt, or had the last one. `last_failure` says why it is not at
    its first attempt any more, or how it ended.
    """

    workflow_execution_id: str
    task_id: str
    kind: str
    status: WorkflowStatus
    queue: str
    priority: int
    args: tuple[Any, ...]
    retry: RetryPolicy
    timeouts: TaskTimeouts
    metadata: Mapping[str, str]
    attempt: int
    worker: str | None
    deferred: bool
    cancel_requested: bool
    progress: float | None
    details: Any
    last_failure: Failure | None
    result: Any
    created_at: datetime
    updated_at: datetime
    scheduled_at: datetime | None
    started_at: datetime | None
    heartbeat_at: datetime | None
    next_attempt_at: datetime | None
    closed_at: datetime | None
    successor: str | None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Newest first. Pass `next_cursor` to get the page after this one; None on the last. A page before it may have
    fewer items than asked for."""

    items: tuple[StandaloneTaskInfo, ...]
    next_cursor: str | None


class TaskHandle:
    """One standalone task. Cheap: making one reads nothing."""

    __slots__ = (
        "_client",
        "_result_type",
        "created",
        "idempotency_key_new",
        "idempotency_key_used",
        "task_id",
        "workflow_execution_id",
    )

    def __init__(
        self,
        client: StandaloneTasks,
        task_id: str,
        workflow_execution_id: str | None = None,
        result_type: Any = Any,
        *,
        created: bool = False,
        idempotency_key_used: bool = False,
        idempotency_key_new: bool = False,
    ) -> None:
        self._client = client
        self._result_type = result_type
        self.task_id = task_id
        """The caller's own key; of a task that was started without one, its execution id."""
        self.workflow_execution_id = workflow_execution_id
        """The execution that runs it; None in a handle of `client.task(id)`, which reads nothing: `find_task` does."""
        self.created = created
        """Whether the call that gave this handle started the task."""
        self.idempotency_key_used = idempotency_key_used
        """Whether the call that gave this handle had an idempotency key."""
        self.idempotency_key_new = idempotency_key_new
        """Whether it was the first with that key; if not, all else is as that one was answered."""

    def __repr__(self) -> str:
        return f"TaskHandle({self.task_id!r}, workflow_execution_id={self.workflow_execution_id!r})"

    @property
    def _address(self) -> str:
        return self.task_id if self.workflow_execution_id is None else self.workflow_execution_id

    async def result(self, *, timeout: float | None = None, type_hint: Any = None) -> Any:
        """Wait for the end and give the result.

        Raises TaskFailed or TaskTimedOut if its last attempt failed, WorkflowCancelled or WorkflowTerminated if it was
        ended from outside, TimeoutError if it takes longer than `timeout` seconds; the task goes on.
        """
        waiting = self._client.tasks.outcome(self._client.org, self._address)
        outcome = await waiting if timeout is None else await asyncio.wait_for(waiting, timeout)
        return result_of_task(outcome, self._result_type if type_hint is None else type_hint)

    async def status(self) -> WorkflowStatus:
        """See TaskView."""
        return (await self._client.tasks.get(self._client.org, self._address)).status

    async def view(self) -> StandaloneTaskInfo:
        """All there is to say about it: kind, status, attempt, progress, last failure, worker, times."""
        return task_info_of(await self._client.tasks.get(self._client.org, self._address))

    async def output(self, *, after: int = 0, limit: int = 100, type_hint: Any = Any) -> TaskOutput:
        """What it has said with `TaskContext.emit`, see `Client.task_output`."""
        execution_id = await self._execution_id()
        return await self._client.task_output(execution_id, TASK_NO, after=after, limit=limit, type_hint=type_hint)

    async def follow(self, *, after: int = 0, type_hint: Any = Any) -> AsyncIterator[TaskUpdate]:
        """What it says, its progress and its attempts, until it has ended; see `Client.follow_task`."""
        execution_id = await self._execution_id()
        async for update in self._client.follow_task(execution_id, TASK_NO, after=after, type_hint=type_hint):
            yield update

    async def _execution_id(self) -> str:
        if self.workflow_execution_id is not None:
            return self.workflow_execution_id
        return (await self._client.tasks.get(self._client.org, self.task_id)).workflow_execution_id

    async def cancel(self, reason: str = "") -> bool:
        """Stop it: a running body is told. False if it is over or was asked before."""
        request = tk.CancelTask(org=self._client.org, task_id=self._address, reason=reason)
        return (await self._client.tasks.cancel(request)).changed

    async def complete(
        self, value: Any = None, *, idempotency_key: str | None = None, idempotency_key_ttl: Duration | None = None
    ) -> SettledPromise:
        """Give the result of an attempt that has called `complete_later()`; its token is not needed.

        Raises TaskNotDeferred if it has not, StaleAttempt if the task is over: the first settlement wins.
        """
        request = tk.SettleTask(
            org=self._client.org,
            task_id=self._address,
            value=encode(value, field="value", limit=self._client._limit),  # noqa: SLF001 - a client and its handle
        )
        return await self._settle(request, idempotency_key, idempotency_key_ttl)

    async def fail(
        self,
        error: BaseException | str,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
    ) -> SettledPromise:
        """As `complete`, but the attempt has failed: it is tried again, unless the error is NonRetryable or the policy
        says no."""
        request = tk.SettleTask(org=self._client.org, task_id=self._address, failure=failure_from(error, "TaskFailed"))
        return await self._settle(request, idempotency_key, idempotency_key_ttl)

    async def _settle(self, request: tk.SettleTask, key: str | None, ttl: Duration | None) -> SettledPromise:
        sent = structs.replace(request, request_id=key, ttl_s=ttl_of(ttl))
        return settled_promise(await self._client.tasks.settle(sent))


class StandaloneTasks(TaskOutputs):
    """The part of `Client` that is about standalone tasks."""

    tasks: tk.Tasks
    org: str
    _limit: int

    async def start_task(
        self,
        task: AnyTask,
        *args: Any,
        task_id: str | None = None,
        queue: str | None = None,
        retry: RetryPolicy | None = None,
        priority: int = 0,
        start_to_close: Duration | None = None,
        schedule_to_close: Duration | None = None,
        heartbeat_timeout: Duration | None = None,
        metadata: Mapping[str, str] | None = None,
        start_at: datetime | None = None,
        if_running: IfRunning | str = IfRunning.USE_EXISTING,
        if_closed: IfClosed | str = IfClosed.ALLOW,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
        request_id: str | None = None,
        using: Any = None,
    ) -> TaskHandle:
        """Run a task on its own, without a workflow: a function made with @task, or a task kind.

        Options that `ctx.task` has mean the same here, and those of `start_workflow` the same as there: with the task
        id of one that is not over, that one is found instead of starting another. What stands at @task counts where
        nothing is given here. Raises UnknownTaskKind if no worker has ever had the task.
        """
        kind, definition = _known(task)
        if retry is not None and not isinstance(retry, RetryPolicy):
            raise errors.InvalidRequest(f"retry must be a RetryPolicy, not {retry!r:.50}", field="retry")
        declared = definition.timeouts if definition is not None else None
        timeouts = task_timeouts(start_to_close, schedule_to_close, heartbeat_timeout, base=declared)
        own_retry = definition.retry if definition is not None else None
        own_queue = definition.queue if definition is not None else None
        answer = await self.tasks.start(
            tk.StartTask(
                org=self.org,
                kind=kind,
                task_id=task_id,
                args=split_args(args, limit=self._limit),
                queue=queue if queue is not None else own_queue or "default",
                priority=priority,
                retry=retry or own_retry or DEFAULT_TASK_RETRY,
                timeouts=timeouts or DEFAULT_TIMEOUTS,
                metadata=tags(metadata),
                start_at=start_instant(start_at),
                if_running=choice(IfRunning, if_running, "if_running"),
                if_closed=choice(IfClosed, if_closed, "if_closed"),
                ttl_s=ttl_of(idempotency_key_ttl),
                request_id=key_of(idempotency_key, request_id),
            ),
            using,
        )
        return TaskHandle(
            self,
            answer.workflow_id,
            answer.workflow_execution_id,
            definition.result_type if definition is not None else Any,
            created=answer.workflow_created,
            idempotency_key_used=answer.idempotency_key_used,
            idempotency_key_new=answer.idempotency_key_new,
        )

    def task(self, id: str, task: AnyTask | None = None) -> TaskHandle:
        """A handle on a standalone task by its execution id, or by its task id: then the one that is not over is meant,
        or the last. Reads nothing. Give the task to get its result in its declared type."""
        definition = None if task is None else _known(task)[1]
        return TaskHandle(self, id, None, definition.result_type if definition is not None else Any)

    async def find_task(self, task_id: str, task: AnyTask | None = None) -> TaskHandle:
        """The task with this id that is not over, or the last one; its handle knows its execution."""
        found = await self.tasks.get(self.org, task_id)
        handle = self.task(found.task_id, task)
        handle.workflow_execution_id = found.workflow_execution_id
        return handle

    async def list_tasks(
        self,
        *,
        status: WorkflowStatus | str | Sequence[WorkflowStatus | str] = (),
        kind: str | None = None,
        queue: str | None = None,
        metadata: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> TaskPage:
        """One page of standalone tasks, newest first: those that match every filter. See TaskView for `status`."""
        page = await self.tasks.list(
            tk.ListTasks(
                org=self.org,
                statuses=statuses(status),
                kind=kind,
                queue=queue,
                metadata=tuple(sorted((tags(metadata) or {}).items())),
                cursor=cursor,
                limit=limit,
            )
        )
        return TaskPage(tuple(task_info_of(found) for found in page.items), page.next_cursor)

    async def iter_tasks(self, **filters: Any) -> AsyncIterator[StandaloneTaskInfo]:
        """All standalone tasks that match, page by page."""
        cursor: str | None = None
        while True:
            page = await self.list_tasks(**filters, cursor=cursor)
            for found in page.items:
                yield found
            cursor = page.next_cursor
            if cursor is None:
                return


def _known(task: AnyTask) -> tuple[str, TaskDefinition | None]:
    if isinstance(task, str):
        return task, None
    definition = task_definition(task)
    if definition is None:
        raise errors.InvalidRequest(
            f"{task!r} is not a task: decorate it with @task, or give its kind as text", field="task"
        )
    return definition.kind, definition


def task_info_of(task: tk.StandaloneTask) -> StandaloneTaskInfo:
    return StandaloneTaskInfo(
        workflow_execution_id=task.workflow_execution_id,
        task_id=task.task_id,
        kind=task.kind,
        status=task.status,
        queue=task.queue,
        priority=task.priority,
        args=tuple(decode(item, field="args") for item in task.args),
        retry=task.retry,
        timeouts=task.timeouts,
        metadata=dict(task.metadata),
        attempt=task.attempt,
        worker=task.worker,
        deferred=task.deferred,
        cancel_requested=task.cancel_requested,
        progress=task.progress,
        details=None if task.details is None else decode(task.details, field="details"),
        last_failure=task.last_failure,
        result=decode(task.result, field="result"),
        created_at=instant(task.created_at),
        updated_at=instant(task.updated_at),
        scheduled_at=_at(task.scheduled_at),
        started_at=_at(task.started_at),
        heartbeat_at=_at(task.heartbeat_at),
        next_attempt_at=_at(task.next_attempt_at),
        closed_at=_at(task.closed_at),
        successor=task.successor,
    )


def _at(at: int | None) -> datetime | None:
    return None if at is None else instant(at)


def result_of_task(outcome: tk.TaskOutcome, result_type: Any) -> Any:
    """The result of a completed task, or the error that says how it ended."""
    if outcome.status is WorkflowStatus.COMPLETED:
        return decode(outcome.result, result_type, field="result")
    because = f": {outcome.reason}" if outcome.reason else ""
    if outcome.status is WorkflowStatus.CANCELLED:
        raise errors.WorkflowCancelled(f"the task was cancelled{because}", reason=outcome.reason)
    if outcome.status is WorkflowStatus.TERMINATED:
        raise errors.WorkflowTerminated(f"the task was terminated{because}", reason=outcome.reason)
    raise _failed(outcome)


def _failed(outcome: tk.TaskOutcome) -> errors.TaskFailed:
    failure = outcome.failure or Failure(type=str(outcome.status))
    tried = f" after {outcome.attempts} attempt(s)" if outcome.attempts else ""
    cls = errors.TaskTimedOut if outcome.timeout else errors.TaskFailed
    return cls(
        f"task {outcome.kind!r} failed{tried}: {failure.type}: {failure.message}",
        error_type=failure.type,
        attempts=outcome.attempts,
        failure=failure,
    )
