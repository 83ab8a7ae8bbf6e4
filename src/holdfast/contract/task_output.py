"""What a task says while it runs, and how far it has got: to read, and to follow."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.contract.fields import After, Limit, Name, Number, null
from holdfast.contract.operation import EXECUTION, GET, TASK, Record, Request, operation, public_names
from holdfast.model.keys import Role
from holdfast.model.values import Failure


class TaskNewsKind(StrEnum):
    OUTPUT = "output"
    PROGRESS = "progress"
    ATTEMPT = "attempt"
    ENDED = "ended"


class TaskEnd(StrEnum):
    """How a task ended. One whose workflow was closed before its end is cancelled, too."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_NAMES: Final = public_names(seq="sequence", task_no="task_number")
_NEWS: Final = tuple(map(str, TaskNewsKind))
_OF_EXECUTIONS: Final = "workflow executions"
_OF_TASKS: Final = "tasks"


class OutputChunk(Record, frozen=True, kw_only=True, rename=_NAMES):
    """One thing that a task has said. Numbers go on from attempt to attempt; `dropped` tells how many before it are not
    kept any more."""

    seq: int
    attempt: int
    at: datetime
    value: Raw = msgspec.field(default_factory=null)
    dropped: int = 0


class OutputPage(Record, frozen=True, kw_only=True, rename=_NAMES):
    """In order. If there is `more`, the next page is `after` the last one's sequence."""

    workflow_execution_id: str
    task_no: int
    chunks: tuple[OutputChunk, ...]
    more: bool


class TaskNews(Record, frozen=True, kw_only=True, rename=_NAMES):
    """Something about a task that is followed.

    `output`: `seq`, `value`, and how many chunks before it were `dropped`. `progress`: the newest. `attempt`: one has
    begun, and `failure` says why the one before is over. `ended`: `status`, and the `failure` of a failed one.
    """

    kind: TaskNewsKind
    attempt: int
    at: datetime
    seq: int | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    dropped: int | UnsetType = UNSET
    progress: float | UnsetType = UNSET
    status: TaskEnd | UnsetType = UNSET
    failure: Failure | UnsetType = UNSET


@operation("task_output", GET, f"{EXECUTION}/tasks/{{task_no}}/output", Role.READER, tag=_OF_EXECUTIONS)
class GetTaskOutput(Request[OutputPage], frozen=True, kw_only=True):
    """What a task has said, as far as it is kept; also when it has ended.

    The next page is `after` the last one's sequence. Raises ExecutionNotFound, TaskNotFound.
    """

    workflow_execution_id: Name
    task_no: Number
    after: After = 0
    limit: Limit = 100


@operation(
    "stream_task",
    GET,
    f"{EXECUTION}/tasks/{{task_no}}/events",
    Role.READER,
    tag=_OF_EXECUTIONS,
    streams=True,
    events=_NEWS,
)
class StreamTask(Request[TaskNews], frozen=True, kw_only=True):
    """What a task says, its progress, attempts and end, as server-sent events; goes on after `Last-Event-ID`.

    The header `Last-Event-ID` counts more than `after`. The present attempt and progress are told to whoever comes. Any
    number may follow one task at the cost of one; nothing of the database is held while there is nothing new. Raises
    ExecutionNotFound, TaskNotFound.
    """

    workflow_execution_id: Name
    task_no: Number
    after: After = 0


@operation("standalone_task_output", GET, f"{TASK}/output", Role.READER, tag=_OF_TASKS)
class GetStandaloneTaskOutput(
    Request[OutputPage], frozen=True, kw_only=True, rename=public_names(task_id="task_execution_id")
):
    """What the task has said, as far as it is kept; also when it has ended.

    The next page is `after` the last one's sequence. Raises TaskNotFound.
    """

    task_id: Name
    after: After = 0
    limit: Limit = 100


@operation("stream_standalone_task", GET, f"{TASK}/events", Role.READER, tag=_OF_TASKS, streams=True, events=_NEWS)
class StreamStandaloneTask(
    Request[TaskNews], frozen=True, kw_only=True, rename=public_names(task_id="task_execution_id")
):
    """What the task says, its progress, attempts and end, as server-sent events; goes on after `Last-Event-ID`.

    The header `Last-Event-ID` counts more than `after`. Raises TaskNotFound.
    """

    task_id: Name
    after: After = 0
