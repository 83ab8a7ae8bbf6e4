"""Standalone tasks: their rows of WorkflowDispatch."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from holdfast.model.keys import Role
from holdfast.server.engine_api import EngineApi
from holdfast.server.grpc.calls import Call, Method
from holdfast.server.grpc.histories import PAGE_BYTES
from holdfast.transport.grpc import holdfast_pb2 as pb
from holdfast.transport.grpc import tasks as wire


class TaskDispatch:
    """The handlers. Each gets a call that was let in, and its message."""

    def __init__(self, engine_api: EngineApi) -> None:
        self._tasks = engine_api.tasks

    def methods(self) -> tuple[Method, ...]:
        return (
            Method("StartTask", pb.StartTaskRequest, pb.StartTaskResponse, Role.WRITER, self.start),
            Method("GetTask", pb.GetTaskRequest, pb.GetTaskResponse, Role.READER, self.get),
            Method("ListTasks", pb.ListTasksRequest, pb.ListTasksResponse, Role.READER, self.list),
            Method("CompleteTask", pb.CompleteTaskRequest, pb.CompleteTaskResponse, Role.WRITER, self.complete),
            Method("FailTask", pb.FailTaskRequest, pb.FailTaskResponse, Role.WRITER, self.fail),
        )

    async def start(self, call: Call, message: Any) -> pb.StartTaskResponse:
        return wire.started(await self._tasks.start(wire.start(message, call.org, call.request_id)))

    async def get(self, call: Call, message: Any) -> pb.GetTaskResponse:
        return pb.GetTaskResponse(task=wire.task(await self._tasks.get(call.org, wire.task_id(message))))

    async def complete(self, call: Call, message: Any) -> pb.CompleteTaskResponse:
        return wire.completed(await self._tasks.settle(wire.complete(message, call.org, call.request_id)))

    async def fail(self, call: Call, message: Any) -> pb.FailTaskResponse:
        return wire.failed(await self._tasks.settle(wire.fail(message, call.org, call.request_id)))

    # Last, so that `list` means the type in the annotations above.
    async def list(self, call: Call, message: Any) -> pb.ListTasksResponse:
        """Tasks carry payloads. If a page is too large for a message, a shorter one is asked for: only who reads it
        knows where the next one begins. One task that is larger comes alone."""
        request = wire.list_request(message, call.org)
        while True:
            page = await self._tasks.list(request)
            answer = pb.ListTasksResponse(
                tasks=[wire.task(found) for found in page.items], next_cursor=page.next_cursor or ""
            )
            fitting = _fitting(answer)
            if fitting == len(answer.tasks):
                return answer
            request = structs.replace(request, limit=fitting)


def _fitting(answer: pb.ListTasksResponse) -> int:
    """How many of the tasks, from the first on, fit into a message; at least one."""
    size = 0
    for number, task in enumerate(answer.tasks):
        size += task.ByteSize()
        if size > PAGE_BYTES and number:
            return number
    return len(answer.tasks)
