"""Standalone tasks as an application starts and follows them: a task run durably without a workflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast import errors
from holdfast.client.options import beginning_at, choice, statuses, tags
from holdfast.client.promises import failure_from, key_of, ttl_of
from holdfast.client.task_output import TaskOutput, TaskOutputs, TaskUpdate
from holdfast.contract import tasks as tk
from holdfast.contract.failures import rejection_of
from holdfast.contract.fields import FOREVER
from holdfast.contract.messages import SettledPromise
from holdfast.contract.operation import Api
from holdfast.contract.records import plain
from holdfast.model.durations import Duration, task_timeouts
from holdfast.model.executions import Status
from holdfast.model.payloads import decode, encode, split_args
from holdfast.model.standalone import TASK_NO
from holdfast.model.values import DEFAULT_TASK_RETRY, DEFAULT_TIMEOUTS, Failure, IfClosed, IfRunning, RetryPolicy
from holdfast.replay.definition import TaskDefinition, task_definition

AnyTask = str | Callable[..., Any]
"""A function made with @task, or a task kind."""


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
        request = tk.GetTaskResult(org=self._client.org, task_id=self._address, wait=FOREVER)
        waiting = self._client.api.call(request)
        ended = await waiting if timeout is None else await asyncio.wait_for(waiting, timeout)
        return result_of_task(ended, self._result_type if type_hint is None else type_hint)

    async def status(self) -> Status:
        """See StandaloneTaskInfo."""
        return (await self._get()).status

    async def view(self) -> tk.StandaloneTaskInfo:
        """All there is to say about it: kind, status, attempt, progress, last failure, worker, times."""
        return plain(await self._get())

    async def _get(self) -> tk.StandaloneTaskInfo:
        return await self._client.api.call(tk.GetTask(org=self._client.org, task_id=self._address))

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
        return (await self._get()).workflow_execution_id

    async def cancel(self, reason: str = "") -> bool:
        """Stop it: a running body is told. False if it is over or was asked before."""
        request = tk.CancelTask(org=self._client.org, task_id=self._address, reason=reason)
        return (await self._client.api.call(request)).changed

    async def complete(
        self, value: Any = None, *, idempotency_key: str | None = None, idempotency_key_ttl: Duration | None = None
    ) -> SettledPromise:
        """Give the result of an attempt that has called `complete_later()`; its token is not needed.

        Raises TaskNotDeferred if it has not, StaleAttempt if the task is over: the first settlement wins.
        """
        request = tk.CompleteTask(
            org=self._client.org,
            task_id=self._address,
            result=encode(value, field="value", limit=self._client._limit),  # noqa: SLF001 - a client and its handle
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return plain(await self._client.api.call(request))

    async def fail(
        self,
        error: BaseException | str,
        *,
        idempotency_key: str | None = None,
        idempotency_key_ttl: Duration | None = None,
    ) -> SettledPromise:
        """As `complete`, but the attempt has failed: it is tried again, unless the error is NonRetryable or the policy
        says no."""
        request = tk.FailTask(
            org=self._client.org,
            task_id=self._address,
            error=rejection_of(failure_from(error, "TaskFailed")),
            request_id=idempotency_key,
            ttl_s=ttl_of(idempotency_key_ttl),
        )
        return plain(await self._client.api.call(request))


class StandaloneTasks(TaskOutputs):
    """The part of `Client` that is about standalone tasks."""

    api: Api
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
        timeouts = (
            task_timeouts(start_to_close, schedule_to_close, heartbeat_timeout, base=declared) or DEFAULT_TIMEOUTS
        )
        own_retry = definition.retry if definition is not None else None
        own_queue = definition.queue if definition is not None else None
        answer = await self.api.call(
            tk.StartTask(
                org=self.org,
                kind=kind,
                task_id=task_id,
                args=split_args(args, limit=self._limit),
                queue=queue if queue is not None else own_queue or "default",
                priority=priority,
                retry=tk.Retry.of(retry or own_retry or DEFAULT_TASK_RETRY),
                start_to_close_s=timeouts.start_to_close_s,
                schedule_to_close_s=timeouts.schedule_to_close_s,
                heartbeat_timeout_s=timeouts.heartbeat_s,
                metadata=tags(metadata),
                start_at=beginning_at(start_at),
                if_running=choice(IfRunning, if_running, "if_running"),
                if_closed=choice(IfClosed, if_closed, "if_closed"),
                ttl_s=ttl_of(idempotency_key_ttl),
                request_id=key_of(idempotency_key, request_id),
            ),
            using,
        )
        return TaskHandle(
            self,
            answer.task_id,
            answer.workflow_execution_id,
            definition.result_type if definition is not None else Any,
            created=answer.task_created,
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
        found = await self.api.call(tk.GetTask(org=self.org, task_id=task_id))
        handle = self.task(found.task_id, task)
        handle.workflow_execution_id = found.workflow_execution_id
        return handle

    async def list_tasks(
        self,
        *,
        status: Status | str | Sequence[Status | str] = (),
        kind: str | None = None,
        queue: str | None = None,
        metadata: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> tk.TaskPage:
        """One page of standalone tasks, newest first: those that match every filter. See StandaloneTaskInfo for
        `status`."""
        request = tk.ListTasks(
            org=self.org,
            statuses=statuses(status),
            kind=kind,
            queue=queue,
            metadata=tags(metadata) or {},
            cursor=cursor,
            limit=limit,
        )
        return plain(await self.api.call(request))

    async def iter_tasks(self, **filters: Any) -> AsyncIterator[tk.StandaloneTaskInfo]:
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


def result_of_task(outcome: tk.TaskResult, result_type: Any) -> Any:
    """The result of a completed task, or the error that says how it ended."""
    if outcome.status is Status.COMPLETED:
        return decode(outcome.result, result_type, field="result")
    because = f": {outcome.reason}" if outcome.reason else ""
    if outcome.status is Status.CANCELLED:
        raise errors.WorkflowCancelled(f"the task was cancelled{because}", reason=outcome.reason)
    if outcome.status is Status.TERMINATED:
        raise errors.WorkflowTerminated(f"the task was terminated{because}", reason=outcome.reason)
    raise _failed(outcome)


def _failed(outcome: tk.TaskResult) -> errors.TaskFailed:
    failure = outcome.failure or Failure(type=str(outcome.status))
    tried = f" after {outcome.attempts} attempt(s)" if outcome.attempts else ""
    cls = errors.TaskTimedOut if outcome.timeout else errors.TaskFailed
    return cls(
        f"task {outcome.kind!r} failed{tried}: {failure.type}: {failure.message}",
        error_type=failure.type,
        attempts=outcome.attempts,
        failure=failure,
    )
