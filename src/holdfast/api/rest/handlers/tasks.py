"""Standalone tasks."""

from __future__ import annotations

from msgspec import Raw, UnsetType

from holdfast.api.rest.calls import Call, within
from holdfast.api.rest.handlers.messages import failure_of_body
from holdfast.contract import tasks as tk
from holdfast.contract.executions import Changed
from holdfast.contract.instants import micros_or_none
from holdfast.errors import InvalidRequest
from holdfast.model.values import TaskTimeouts
from holdfast.wire.rest import message_views as mv
from holdfast.wire.rest import task_views as tv


async def start_task(call: Call) -> tv.StartTaskView:
    body: tv.StartTaskBody = call.body
    answer = await call.nouns.tasks.start(
        tk.StartTask(
            org=call.org,
            kind=body.task_kind,
            task_id=body.task_id,
            args=_args(body),
            queue=body.queue,
            priority=body.priority_seconds,
            retry=tv.read_retry(body.retry),
            timeouts=TaskTimeouts(
                start_to_close_s=body.start_to_close_seconds,
                schedule_to_close_s=body.schedule_to_close_seconds,
                heartbeat_s=body.heartbeat_timeout_seconds,
            ),
            metadata=body.metadata,
            start_at=micros_or_none(body.start_at),
            if_running=body.if_running,
            if_closed=body.if_closed,
            ttl_s=body.idempotency_key_ttl_seconds,
            request_id=call.request_id(),
        )
    )
    return tv.StartTaskView(
        workflow_execution_id=answer.workflow_execution_id,
        task_id=answer.workflow_id,
        task_created=answer.workflow_created,
        idempotency_key_used=answer.idempotency_key_used,
        idempotency_key_new=answer.idempotency_key_new,
    )


def _args(body: tv.StartTaskBody) -> tuple[Raw, ...]:
    if isinstance(body.input, UnsetType):
        return body.args or ()
    if body.args is not None:
        raise InvalidRequest("input is the only argument and args are all of them: give one of the two", field="args")
    return (body.input,)


async def list_tasks(call: Call) -> tv.StandaloneTaskPage:
    query: tv.TasksQuery = call.query
    page = await call.nouns.tasks.list(
        tk.ListTasks(
            org=call.org,
            statuses=query.status,
            kind=query.task_kind,
            queue=query.queue,
            metadata=tuple(sorted(_pair_of(text) for text in query.metadata)),
            cursor=query.cursor,
            limit=query.limit,
        )
    )
    items = tuple(tv.standalone_task_view(item) for item in page.items)
    return tv.StandaloneTaskPage(items=items, next_cursor=page.next_cursor)


async def get_task(call: Call) -> tv.StandaloneTaskView:
    return tv.standalone_task_view(await call.nouns.tasks.get(call.org, _id(call)))


async def task_result(call: Call) -> tv.TaskResultView:
    task = await call.nouns.tasks.get(call.org, _id(call))
    if call.query.wait or not task.status.is_open:
        # One that is over has its outcome at once, unless another goes on in its place.
        outcome = await within(call.nouns.tasks.outcome(call.org, task.workflow_execution_id), call.query.wait or 1.0)
        if outcome is not None:
            return tv.task_result_view(outcome)
        task = await call.nouns.tasks.get(call.org, task.workflow_execution_id)
    return tv.TaskResultView(
        workflow_execution_id=task.workflow_execution_id, task_kind=task.kind, status=task.status, closed=False
    )


async def complete_task(call: Call) -> mv.SettledView:
    body: tv.CompleteTaskBody = call.body
    return mv.settled_view(
        await call.nouns.tasks.settle(
            tk.SettleTask(
                org=call.org,
                task_id=_id(call),
                value=body.result,
                request_id=call.request_id(),
                ttl_s=body.idempotency_key_ttl_seconds,
            )
        )
    )


async def fail_task(call: Call) -> mv.SettledView:
    body: tv.FailTaskBody = call.body
    return mv.settled_view(
        await call.nouns.tasks.settle(
            tk.SettleTask(
                org=call.org,
                task_id=_id(call),
                failure=failure_of_body(body.error, "TaskFailed"),
                request_id=call.request_id(),
                ttl_s=body.idempotency_key_ttl_seconds,
            )
        )
    )


async def cancel_task(call: Call) -> Changed:
    request = tk.CancelTask(org=call.org, task_id=_id(call), reason=call.body.reason)
    return await call.nouns.tasks.cancel(request)


def _id(call: Call) -> str:
    return call.path["task_execution_id"]


def _pair_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequest(f"metadata is given as key=value, not {text!r:.100}", field="metadata")
    return key, value
