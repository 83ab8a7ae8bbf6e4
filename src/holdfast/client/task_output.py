"""What tasks say while they run: the part of `Client` that reads and follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType, structs

from holdfast.contract.operation import Api
from holdfast.contract.task_output import GetTaskOutput, OutputChunk, StreamTask, TaskEnd, TaskNews, TaskNewsKind
from holdfast.model.payloads import decode
from holdfast.model.values import Failure


class TaskChunk(OutputChunk, frozen=True, kw_only=True):
    """One thing that a task has said. Numbers go on from attempt to attempt; `dropped` tells how many before it are not
    kept any more."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """One page of what a task has said, in order. If there is `more`, ask again after the last number."""

    chunks: tuple[TaskChunk, ...]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUpdate:
    """Something about a task that is followed.

    kind "output": `seq`, `value`, and how many chunks before it were `dropped`. "progress": the newest, 0 to 1.
    "attempt": this one has begun, and `failure` says why the one before is over, if that is known. "ended": `status`
    is "completed", "failed" (with its `failure`) or "cancelled"; the last update.
    """

    kind: TaskNewsKind
    attempt: int
    at: datetime
    seq: int | None = None
    value: Any = None
    dropped: int = 0
    progress: float | None = None
    status: TaskEnd | None = None
    failure: Failure | None = None


class TaskOutputs:
    """See `Client`."""

    api: Api
    org: str

    async def task_output(
        self, workflow_execution_id: str, task_no: int, *, after: int = 0, limit: int = 100, type_hint: Any = Any
    ) -> TaskOutput:
        """What is kept of what a task has said with `TaskContext.emit`, after a number. Also when it has ended.

        Tasks are numbered from 1 in the order in which their workflow has asked for them. Raises ExecutionNotFound,
        TaskNotFound.
        """
        request = GetTaskOutput(
            org=self.org, workflow_execution_id=workflow_execution_id, task_no=task_no, after=after, limit=limit
        )
        page = await self.api.call(request)
        return TaskOutput(tuple(_chunk(chunk, type_hint) for chunk in page.chunks), page.more)

    async def follow_task(
        self, workflow_execution_id: str, task_no: int, *, after: int = 0, type_hint: Any = Any
    ) -> AsyncIterator[TaskUpdate]:
        """What a task says, its progress and its attempts, as they come, until it has ended.

        First comes what it has said already, after number `after`. Who stops and comes back with the number of the last
        chunk misses nothing that is kept. Raises ExecutionNotFound, TaskNotFound.
        """
        request = StreamTask(org=self.org, workflow_execution_id=workflow_execution_id, task_no=task_no, after=after)
        async for news in self.api.stream(request):
            for one in news:
                yield _update(one, type_hint)


def _chunk(chunk: OutputChunk, type_hint: Any) -> TaskChunk:
    value = decode(chunk.value, type_hint, field="chunk")
    return TaskChunk(**{**structs.asdict(chunk), "value": value})


def _update(news: TaskNews, type_hint: Any) -> TaskUpdate:
    told = {name: value for name, value in structs.asdict(news).items() if value is not UNSET}
    if not isinstance(news.value, UnsetType):
        told["value"] = decode(news.value, type_hint, field="chunk")
    return TaskUpdate(**told)
