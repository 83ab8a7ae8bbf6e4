"""`contract.tasks.Tasks` over HTTP."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from holdfast.client.remote.caller import Caller, escaped, new_request_id
from holdfast.client.remote.http import WAIT_S, no_transaction
from holdfast.client.remote.http_messages import rejection
from holdfast.contract import executions as ex
from holdfast.contract import tasks as tk
from holdfast.contract.instants import instant_or_none
from holdfast.contract.messages import SettleAnswer
from holdfast.model.names import check_name
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import message_views as mv
from holdfast.wire.rest import task_views as tv


class HttpTasks:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def start(self, request: tk.StartTask, using: Any = None) -> ex.StartAnswer:
        no_transaction(using)
        given = request.request_id is not None
        body = tv.StartTaskBody(
            task_kind=request.kind,
            task_id=request.task_id,
            args=request.args,
            queue=request.queue,
            priority_seconds=request.priority,
            retry=tv.retry_body(request.retry),
            start_to_close_seconds=request.timeouts.start_to_close_s,
            schedule_to_close_seconds=request.timeouts.schedule_to_close_s,
            heartbeat_timeout_seconds=request.timeouts.heartbeat_s,
            metadata=request.metadata,
            start_at=instant_or_none(request.start_at),
            if_running=request.if_running,
            if_closed=request.if_closed,
            request_id=request.request_id if given else new_request_id(),
            idempotency_key_ttl_seconds=request.ttl_s,
        )
        view = await self._caller.post(_tasks(request.org), body, tv.StartTaskView)
        return ex.StartAnswer(
            view.workflow_execution_id,
            view.task_id,
            view.task_created,
            view.idempotency_key_used and given,
            view.idempotency_key_new and given,
        )

    async def get(self, org: str, task_id: str) -> tk.StandaloneTask:
        return tv.read_standalone_task(await self._caller.get(_one(org, task_id), tv.StandaloneTaskView))

    async def outcome(self, org: str, task_id: str) -> tk.TaskOutcome:
        path = _one(org, task_id, "/result")
        while True:
            view = await self._caller.get(path, tv.TaskResultView, {"wait": WAIT_S}, WAIT_S)
            outcome = tv.read_task_result(view)
            if outcome is not None:
                return outcome

    async def settle(self, request: tk.SettleTask) -> SettleAnswer:
        key: dict[str, Any] = {
            "request_id": request.request_id if request.request_id is not None else new_request_id(),
            "idempotency_key_ttl_seconds": request.ttl_s,
        }
        body: b.Body = tv.CompleteTaskBody(result=request.value, **key)
        if request.failure is not None:
            body = tv.FailTaskBody(error=rejection(request.failure), **key)
        action = "/complete" if request.failure is None else "/fail"
        view = await self._caller.post(_one(request.org, request.task_id, action), body, mv.SettledView)
        answer = mv.read_settled(view)
        if request.request_id is None:
            return structs.replace(answer, idempotency_key_used=False, idempotency_key_new=False)
        return answer

    async def cancel(self, request: tk.CancelTask) -> ex.Changed:
        path = _one(request.org, request.task_id, "/cancel")
        view = await self._caller.post(path, b.ReasonBody(reason=request.reason), ex.Changed)
        return ex.Changed(view.changed, view.successor)

    async def list(self, request: tk.ListTasks) -> tk.TaskPage:
        query = {
            "status": [str(status) for status in request.statuses] or None,
            "task_kind": request.kind,
            "queue": request.queue,
            "metadata": [f"{key}={value}" for key, value in request.metadata] or None,
            "cursor": request.cursor,
            "limit": request.limit,
        }
        page = await self._caller.get(_tasks(request.org), tv.StandaloneTaskPage, query)
        return tk.TaskPage(tuple(tv.read_standalone_task(item) for item in page.items), page.next_cursor)


def _tasks(org: str) -> str:
    return f"/api/orgs/{escaped(org)}/tasks"


def _one(org: str, task_id: str, action: str = "") -> str:
    check_name(task_id, "task_id")
    return f"{_tasks(org)}/{escaped(task_id)}{action}"
