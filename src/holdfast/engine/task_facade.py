"""`contract.tasks.Tasks`, in process: standalone tasks, each of them an execution of the built-in workflow."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast.contract import executions as ex
from holdfast.contract import tasks as tk
from holdfast.contract.messages import SettleAnswer
from holdfast.engine.checks import check_payload, check_tags, check_timeout
from holdfast.engine.rules.standalone import TOLD_BY, UNDER_WAY, is_task, no_task, order_of, out_of_time, picture
from holdfast.engine.rules.workspace import Outcome
from holdfast.engine.tasks.settle import SettleStandalone
from holdfast.engine.tasks.start import StartStandalone
from holdfast.errors import InvalidDuration, InvalidRequest
from holdfast.model import events as e
from holdfast.model.executions import Execution, Status
from holdfast.model.names import check_name, check_priority, check_text
from holdfast.model.standalone import KIND_TAG, PREFIX, TASK_WORKFLOW, is_reserved
from holdfast.model.values import NULL, TEN_YEARS_S, RetryPolicy
from holdfast.store.looks import ExecutionQuery
from holdfast.telemetry.traces import stamped

if TYPE_CHECKING:
    from holdfast.engine.facade import LocalEngine

LOOKED_AT: Final = 1_000
"""A list looks at no more executions than this for one page, however few of them have a status that is asked for."""
WIDER: Final = 4
"""So many times more are looked at in the next read if a page is not full."""
MOST_SUCCESSORS: Final = 10_000
"""A chain of successors is never followed further: a loop, however made, must end."""


class LocalTasks:
    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._store = engine.store
        self._limits = engine.config.limits

    def start(self, request: tk.StartTask, using: Any = None) -> Awaitable[ex.StartAnswer]:
        self._check_start(request)
        if self._engine.tracing is not None:
            request = stamped(request, self._engine.tracing)
        return self._engine.run(StartStandalone(request), using)

    def _check_start(self, request: tk.StartTask) -> None:
        check_name(request.kind, "task_kind")
        check_name(request.queue, "queue")
        check_priority(request.priority)
        for field in ("task_id", "request_id"):
            if getattr(request, field) is not None:
                check_name(getattr(request, field), field)
        for key, value in (request.metadata or {}).items():
            check_text(key, "metadata")
            check_text(value, "metadata")
            if is_reserved(key):
                raise InvalidRequest(
                    f"metadata that begin with {PREFIX!r} are the engine's own, as {key!r:.60} would be: take another "
                    "name",
                    field="metadata",
                )
        _check_retry(request.retry)
        check_timeout(request.timeouts.start_to_close_s, "start_to_close")
        check_timeout(request.timeouts.schedule_to_close_s, "schedule_to_close")
        check_timeout(request.timeouts.heartbeat_s, "heartbeat_timeout")
        check_timeout(request.ttl_s, "idempotency_key_ttl")
        check_payload(Raw(msgspec.json.encode(request.args)), "args", self._limits)

    async def get(self, org: str, task_id: str) -> tk.StandaloneTask:
        execution = await self._found(org, task_id)
        (task,) = await self._look_at([execution])
        if task is None:
            raise no_task(execution.id, org)
        return task

    async def _found(self, org: str, task_id: str) -> Execution:
        """By its execution id or its task id; anything else is no task, whatever it is."""
        check_name(task_id, "task_id")
        found = (await self._store.executions(org, [task_id])).get(task_id)
        if found is None:
            found = await self._store.execution_by_workflow_id(org, task_id)
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

    async def _look_at(self, found: Sequence[Execution]) -> Sequence[tk.StandaloneTask | None]:
        """Two reads for any number of them, all of one org; None for one that was removed since it was found. The rows
        first: if a task ends in between, its end is among the events."""
        if not found:
            return ()
        org, under_way = found[0].org, [execution.id for execution in found if execution.open_tasks]
        rows = await self._store.tasks_of(org, under_way) if under_way else {}
        events = await self._store.events_of(org, [execution.id for execution in found], TOLD_BY)
        return [
            picture(execution, events[execution.id], next(iter(rows.get(execution.id, ())), None))
            if execution.id in events
            else None
            for execution in found
        ]

    async def _events(self, org: str, execution_id: str) -> list[e.HistoryEvent]:
        events = await self._store.history(org, execution_id, types=TOLD_BY)
        if not events:
            raise no_task(execution_id, org)  # removed since it was found
        return events

    async def outcome(self, org: str, task_id: str) -> tk.TaskOutcome:
        execution_id = (await self._found(org, task_id)).id
        outcome = await self._engine.reads.outcome(org, execution_id)
        for _ in range(MOST_SUCCESSORS):
            body = outcome.last_event.body
            successor = getattr(body, "new_execution_id", None) or getattr(body, "successor", None)
            if successor is None:
                break
            execution_id = successor
            outcome = await self._engine.reads.outcome(org, execution_id)
        return _outcome(execution_id, outcome, await self._events(org, execution_id))

    async def settle(self, request: tk.SettleTask) -> SettleAnswer:
        if request.request_id is not None:
            check_name(request.request_id, "idempotency_key")
        check_timeout(request.ttl_s, "idempotency_key_ttl")
        check_payload(request.value, "value", self._limits)
        execution = await self._open(request.org, request.task_id)
        return await self._engine.run(SettleStandalone(request, execution.id))

    async def cancel(self, request: tk.CancelTask) -> ex.Changed:
        execution = await self._open(request.org, request.task_id)
        return await self._engine.api.call(
            ex.CancelExecution(org=request.org, workflow_execution_id=execution.id, reason=request.reason)
        )

    async def list(self, request: tk.ListTasks) -> tk.TaskPage:
        if not 1 <= request.limit <= self._limits.page_size:
            raise InvalidRequest(f"limit must lie between 1 and {self._limits.page_size}", field="limit")
        check_tags(request.metadata)
        for text in (request.kind, request.queue):
            if text is not None:
                check_text(text, "filter")
        cursors = self._engine.cursors
        before, left, size = cursors.read(request), LOOKED_AT, request.limit
        items: list[tk.StandaloneTask] = []
        while True:
            found = await self._store.list_executions(_query(request, before, size + 1))
            tasks = await self._look_at(found[:size])
            for execution, task in zip(found, tasks, strict=False):
                before = execution.id
                if task is not None and (not request.statuses or task.status in request.statuses):
                    items.append(task)
                    if len(items) == request.limit:
                        break
            if not found or before == found[-1].id:
                return tk.TaskPage(tuple(items))
            left -= len(tasks)
            if len(items) == request.limit or left <= 0:
                assert before is not None, "it has looked at some"
                return tk.TaskPage(tuple(items), cursors.make(request, before))
            size = min(size * WIDER, left)


def _check_retry(policy: RetryPolicy) -> None:
    """What would come to instants that no database can keep."""
    for field in ("initial_interval_s", "max_interval_s"):
        if not 0 <= getattr(policy, field) <= TEN_YEARS_S:
            raise InvalidDuration(f"{field} must lie between 0 and ten years", field=field)
    for name in policy.non_retryable:
        check_text(name, "non_retryable")


def _query(request: tk.ListTasks, before: str | None, limit: int) -> ExecutionQuery:
    statuses = set(request.statuses)
    if statuses & UNDER_WAY:
        statuses |= UNDER_WAY
    kind = () if request.kind is None else ((KIND_TAG, request.kind),)
    return ExecutionQuery(
        org=request.org,
        statuses=tuple(sorted(statuses)),
        kinds=(TASK_WORKFLOW,),
        queue=request.queue,
        metadata=tuple(sorted((*request.metadata, *kind))),
        before=before,
        limit=limit,
    )


def _outcome(execution_id: str, outcome: Outcome, events: list[e.HistoryEvent]) -> tk.TaskOutcome:
    order = order_of(events)
    end = outcome.last_event.body
    failed = next((event.body for event in reversed(events) if isinstance(event.body, e.TaskFailed)), None)
    failure, timeout = getattr(end, "failure", None), ""
    if outcome.status is Status.FAILED and failed is not None:
        failure, timeout = failed.failure, failed.timeout
    elif outcome.status is Status.TIMED_OUT:
        failure, timeout = out_of_time(order.timeouts.schedule_to_close_s), "schedule_to_close"
    return tk.TaskOutcome(
        workflow_execution_id=execution_id,
        kind=order.kind,
        status=outcome.status,
        result=end.result if isinstance(end, e.WorkflowCompleted) else NULL,
        failure=failure,
        attempts=0 if failed is None else failed.attempt,
        timeout=timeout,
        reason=getattr(end, "reason", ""),
    )
