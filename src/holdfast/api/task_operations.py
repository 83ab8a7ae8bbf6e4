"""Rows about the output of standalone tasks. `task_execution_id` is the id of the task's execution, or its task id."""

from __future__ import annotations

from typing import Final

from holdfast.api.operation import ORG, read
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import task_output_views as ov

TASKS: Final = f"{ORG}/tasks"
ONE_TASK: Final = f"{TASKS}/{{task_execution_id}}"
_TA: Final = "tasks"
TASK_OPERATIONS: Final = (
    read(
        "standalone_task_output",
        f"{ONE_TASK}/output",
        "executions.task_output",
        _TA,
        "What the task has said, as far as it is kept; also when it has ended",
        ov.OutputPageView,
        query=b.OutputQuery,
    ),
    read(
        "stream_standalone_task",
        f"{ONE_TASK}/events",
        "executions.follow_task",
        _TA,
        "What the task says, its progress, attempts and end, as server-sent events; goes on after `Last-Event-ID`",
        ov.TaskNewsView,
        query=b.StreamQuery,
        streams=True,
    ),
)
