"""What tasks say while they run: the part of `Client` that reads and follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.client.views import instant
from holdfast.contract import executions as ex
from holdfast.contract.task_output import TaskEnd, TaskFeedItem, TaskFeedItemKind
from holdfast.model.payloads import decode
from holdfast.model.values import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChunk:
    """One thing that a task has said. Numbers go on from attempt to attempt; `dropped` tells how many before it are not
    kept any more."""

    seq: int
    attempt: int
    at: datetime
    value: Any
    dropped: int = 0


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

    kind: TaskFeedItemKind
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

    executions: ex.Executions
    org: str

    async def task_output(
        self, workflow_execution_id: str, task_no: int, *, after: int = 0, limit: int = 100, type_hint: Any = Any
    ) -> TaskOutput:
        """What is kept of what a task has said with `TaskContext.emit`, after a number. Also when it has ended.

        Tasks are numbered from 1 in the order in which their workflow has asked for them. Raises ExecutionNotFound,
        TaskNotFound.
        """
        page = await self.executions.task_output(self.org, workflow_execution_id, task_no, after, limit)
        chunks = []
        for chunk in page.chunks:
            chunks.append(
                TaskChunk(
                    seq=chunk.seq,
                    attempt=chunk.attempt,
                    at=instant(chunk.at),
                    value=decode(chunk.data, type_hint, field="chunk"),
                    dropped=chunk.seq - after - 1,
                )
            )
            after = chunk.seq
        return TaskOutput(tuple(chunks), page.more)

    async def follow_task(
        self, workflow_execution_id: str, task_no: int, *, after: int = 0, type_hint: Any = Any
    ) -> AsyncIterator[TaskUpdate]:
        """What a task says, its progress and its attempts, as they come, until it has ended.

        First comes what it has said already, after number `after`. Who stops and comes back with the number of the last
        chunk misses nothing that is kept. Raises ExecutionNotFound, TaskNotFound.
        """
        async for item in self.executions.follow_task(self.org, workflow_execution_id, task_no, after):
            for one in item:
                yield _update(one, type_hint)


def _update(item: TaskFeedItem, type_hint: Any) -> TaskUpdate:
    is_output = item.kind is TaskFeedItemKind.OUTPUT
    return TaskUpdate(
        kind=item.kind,
        attempt=item.attempt,
        at=instant(item.at),
        seq=item.seq if is_output else None,
        value=decode(item.data, type_hint, field="chunk") if is_output else None,
        dropped=item.dropped,
        progress=item.progress,
        status=item.status,
        failure=item.failure,
    )
