"""Standalone tasks: each of them an execution of the built-in workflow, told in the words of tasks."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from holdfast.config import Limits
from holdfast.contract import executions as ex
from holdfast.contract import tasks as tk
from holdfast.contract.failures import failure_of
from holdfast.contract.fields import FOREVER
from holdfast.contract.messages import SettledPromise
from holdfast.contract.task_output import (
    GetStandaloneTaskOutput,
    GetTaskOutput,
    OutputPage,
    StreamStandaloneTask,
    StreamTask,
    TaskNews,
)
from holdfast.engine.api import Run, answers
from holdfast.engine.checks import check_payload
from holdfast.engine.cursors import Cursors
from holdfast.engine.executions.cancel import Cancel
from holdfast.engine.rules.standalone import TOLD_BY, UNDER_WAY, is_task, no_task, order_of, out_of_time, picture
from holdfast.engine.task_feeds import TaskFeeds
from holdfast.engine.tasks.settle import SettleStandalone, SettleTask
from holdfast.engine.tasks.start import StartStandalone
from holdfast.engine.rules.workspace import Outcome
from holdfast.errors import InvalidRequest
from holdfast.model import events as e
from holdfast.model.executions import Execution, Status
from holdfast.model.standalone import KIND_TAG, TASK_NO, TASK_WORKFLOW
from holdfast.model.values import NULL, Failure
from holdfast.store import reads
from holdfast.store.protocol import Store
from holdfast.telemetry.traces import Tracing, stamped

LOOKED_AT: Final = 1_000
"""A list looks at no more executions than this for one page, however few of them have a status that is asked for."""
WIDER: Final = 4
"""So many times more are looked at in the next read if a page is not full."""
MOST_SUCCESSORS: Final = 10_000
"""A chain of successors is never followed further: a loop, however made, must end."""


FAILED: Final = "TaskFailed"
"""The type of an error that is given as a text alone."""


class StandaloneTasks:
    """`outcome` waits for the end of an execution. `cursors` and `tracing` give what is in use at the time."""

    def __init__(
        self,
        store: Store,
        run: Run,
        limits: Limits,
        *,
        outcome: Callable[[str, str], Awaitable[Outcome]],
        cursors: Callable[[], Cursors],
        tracing: Callable[[], Tracing | None],
        feeds: TaskFeeds,
    ) -> None:
        self._store = store
        self._run = run
        self._limits = limits
        self._outcome = outcome
        self._cursors = cursors
        self._tracing = tracing
        self._feeds = feeds

    @answers(tk.StartTask)
    async def start(self, request: tk.StartTask, using: Any = None) -> tk.StartedTask:
        request = structs.replace(request, args=self._args(request), input=UNSET)
        tracing = self._tracing()
        if tracing is not None:
            request = stamped(request, tracing)
        answer: ex.StartAnswer = await self._run(StartStandalone(request), using)
        return tk.StartedTask(
            workflow_execution_id=answer.workflow_execution_id,
            task_id=answer.workflow_id,
            task_created=answer.workflow_created,
            idempotency_key_used=answer.idempotency_key_used,
            idempotency_key_new=answer.idempotency_key_new,
        )

    def _args(self, request: tk.StartTask) -> tuple[Raw, ...] | None:
        """All arguments; None if there are none."""
        args = request.args
        if not isinstance(request.input, UnsetType):
            if args is not None:
                raise InvalidRequest(
                    "input is the only argument and args are all of them: give one of the two", field="args"
                )
            args = (request.input,)
        check_payload(Raw(msgspec.json.encode(args or ())), "args", self._limits)
        return args or None

    @answers(tk.GetTask)
    async def get(self, request: tk.GetTask) -> tk.StandaloneTaskInfo:
        return await self._info(request.org, request.task_id)

    @answers(GetStandaloneTaskOutput)
    async def output(self, request: GetStandaloneTaskOutput) -> OutputPage:
        execution = await self._found(request.org, request.task_id)
        return await self._feeds.page(
            GetTaskOutput(
                org=request.org,
                workflow_execution_id=execution.id,
                task_no=TASK_NO,
                after=request.after,
                limit=request.limit,
            )
        )

    @answers(StreamStandaloneTask)
    async def follow(self, request: StreamStandaloneTask) -> AsyncIterator[builtins.list[TaskNews]]:
        execution = await self._found(request.org, request.task_id)
        stream = StreamTask(org=request.org, workflow_execution_id=execution.id, task_no=TASK_NO, after=request.after)
        async for news in self._feeds.follow(stream):
            yield news

    async def _info(self, org: str, task_id: str) -> tk.StandaloneTaskInfo:
        execution = await self._found(org, task_id)
        (task,) = await self._look_at([execution])
        if task is None:
            raise no_task(execution.id, org)
        return task

    async def _found(self, org: str, task_id: str) -> Execution:
        """By its execution id or its task id; anything else is no task, whatever it is."""
        found = (await self._store.read(reads.Executions(org, [task_id]))).get(task_id)
        if found is None:
            found = await self._store.read(reads.ExecutionByWorkflowId(org, task_id))
        if found is None or not is_task(found, org):
            raise no_task(task_id, org)
        return found

    async def _open(self, org: str, task_id: str) -> Execution:
        """The same, or the one that goes on in its place after a reset or retry."""
        found = await self._found(org, task_id)
        for _ in range(MOST_SUCCESSORS):
            if found.is_open or found.successor is None:
                break
            found = await self._found(org, found.successor)
        return found

    async def _look_at(self, found: Sequence[Execution]) -> Sequence[tk.StandaloneTaskInfo | None]:
        """Two reads for any number of them, all of one org; None for one that was removed since it was found. The rows
        first: if a task ends in between, its end is among the events."""
        if not found:
            return ()
        org, under_way = found[0].org, [execution.id for execution in found if execution.open_tasks]
        rows = await self._store.read(reads.TasksOf(org, under_way)) if under_way else {}
        events = await self._store.read(reads.EventsOf(org, [execution.id for execution in found], TOLD_BY))
        return [
            picture(execution, events[execution.id], next(iter(rows.get(execution.id, ())), None))
            if execution.id in events
            else None
            for execution in found
        ]

    async def _events(self, org: str, execution_id: str) -> list[e.HistoryEvent]:
        events = await self._store.read(reads.History(org, execution_id, types=TOLD_BY))
        if not events:
            raise no_task(execution_id, org)  # removed since it was found
        return events

    @answers(tk.GetTaskResult)
    async def result(self, request: tk.GetTaskResult) -> tk.TaskResult:
        if request.wait == FOREVER:
            return await self._ended(request.org, request.task_id)
        task = await self._info(request.org, request.task_id)
        if request.wait or not task.status.is_open:
            try:
                # One that is over has its outcome at once, unless another goes on in its place.
                async with asyncio.timeout(request.wait or 1.0):
                    return await self._ended(request.org, task.workflow_execution_id)
            except TimeoutError:
                task = await self._info(request.org, task.workflow_execution_id)
        return tk.TaskResult(
            workflow_execution_id=task.workflow_execution_id, kind=task.kind, status=task.status, closed=False
        )

    async def _ended(self, org: str, task_id: str) -> tk.TaskResult:
        """Waits until it is closed; if another execution goes on in its place, until that one is."""
        execution_id = (await self._found(org, task_id)).id
        outcome = await self._outcome(org, execution_id)
        for _ in range(MOST_SUCCESSORS):
            body = outcome.last_event.body
            successor = getattr(body, "new_execution_id", None) or getattr(body, "successor", None)
            if successor is None:
                break
            execution_id = successor
            outcome = await self._outcome(org, execution_id)
        return _result(execution_id, outcome, await self._events(org, execution_id))

    @answers(tk.CompleteTask)
    async def complete(self, request: tk.CompleteTask) -> SettledPromise:
        return await self._settle(request, value=request.result)

    @answers(tk.FailTask)
    async def fail(self, request: tk.FailTask) -> SettledPromise:
        return await self._settle(request, failure=failure_of(request.error, FAILED))

    async def _settle(
        self, request: tk.CompleteTask | tk.FailTask, value: Raw = NULL, failure: Failure | None = None
    ) -> SettledPromise:
        execution = await self._open(request.org, request.task_id)
        settle = SettleTask(
            org=request.org,
            task_id=request.task_id,
            value=value,
            failure=failure,
            request_id=request.request_id,
            ttl_s=request.ttl_s,
        )
        answer: SettledPromise = await self._run(SettleStandalone(settle, execution.id), None)
        return answer

    @answers(tk.CancelTask)
    async def cancel(self, request: tk.CancelTask) -> ex.Changed:
        execution = await self._open(request.org, request.task_id)
        cancel = ex.CancelExecution(org=request.org, workflow_execution_id=execution.id, reason=request.reason)
        changed: ex.Changed = await self._run(Cancel(cancel), None)
        return changed

    @answers(tk.ListTasks)
    async def list(self, request: tk.ListTasks) -> tk.TaskPage:
        cursors = self._cursors()
        before, left, size = cursors.read(request), LOOKED_AT, request.limit
        items: list[tk.StandaloneTaskInfo] = []
        while True:
            found = await self._store.read(_query(request, before, size + 1))
            tasks = await self._look_at(found[:size])
            for execution, task in zip(found, tasks, strict=False):
                before = execution.id
                if task is not None and (not request.statuses or task.status in request.statuses):
                    items.append(task)
                    if len(items) == request.limit:
                        break
            if not found or before == found[-1].id:
                return tk.TaskPage(items=tuple(items))
            left -= len(tasks)
            if len(items) == request.limit or left <= 0:
                assert before is not None, "it has looked at some"
                return tk.TaskPage(items=tuple(items), next_cursor=cursors.make(request, before))
            size = min(size * WIDER, left)


def _query(request: tk.ListTasks, before: str | None, limit: int) -> reads.ListExecutions:
    statuses = set(request.statuses)
    if statuses & UNDER_WAY:
        statuses |= UNDER_WAY
    kind = () if request.kind is None else ((KIND_TAG, request.kind),)
    return reads.ListExecutions(
        org=request.org,
        statuses=tuple(sorted(statuses)),
        kinds=(TASK_WORKFLOW,),
        queue=request.queue,
        metadata=tuple(sorted((*request.metadata.items(), *kind))),
        before=before,
        limit=limit,
    )


def _result(execution_id: str, outcome: Outcome, events: list[e.HistoryEvent]) -> tk.TaskResult:
    order = order_of(events)
    end = outcome.last_event.body
    failed = next((event.body for event in reversed(events) if isinstance(event.body, e.TaskFailed)), None)
    failure, timeout = getattr(end, "failure", None), ""
    if outcome.status is Status.FAILED and failed is not None:
        failure, timeout = failed.failure, failed.timeout
    elif outcome.status is Status.TIMED_OUT:
        failure, timeout = out_of_time(order.timeouts.schedule_to_close_s), "schedule_to_close"
    return tk.TaskResult(
        workflow_execution_id=execution_id,
        kind=order.kind,
        status=outcome.status,
        closed=True,
        result=end.result if isinstance(end, e.WorkflowCompleted) else NULL,
        failure=failure,
        attempts=0 if failed is None else failed.attempt,
        timeout=timeout,
        reason=getattr(end, "reason", ""),
    )
