"""The table's rows about executions."""

from __future__ import annotations

from typing import Final

from holdfast.api.operation import ONE, read
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import explanation_views as xv
from holdfast.wire.rest import message_views as mv
from holdfast.wire.rest import task_output_views as ov

_EX: Final = "workflow executions"

EXECUTION_OPERATIONS: Final = (
    read(
        "explain_workflow",
        f"{ONE}/explanation",
        "explanations.execution",
        _EX,
        "Why an execution does not move, or how it ended, and what to do next",
        xv.ExplanationView,
    ),
    read(
        "task_output",
        f"{ONE}/tasks/{{task_no}}/output",
        "executions.task_output",
        _EX,
        "What a task has said, as far as it is kept; also when it has ended",
        ov.OutputPageView,
        query=b.OutputQuery,
    ),
    read(
        "stream_task",
        f"{ONE}/tasks/{{task_no}}/events",
        "executions.follow_task",
        _EX,
        "What a task says, its progress, attempts and end, as server-sent events; goes on after `Last-Event-ID`",
        ov.TaskNewsView,
        query=b.StreamQuery,
        streams=True,
    ),
    read(
        "workflow_waits",
        f"{ONE}/waits",
        "messages.waits",
        _EX,
        "The events, messages and broadcasts it waits for",
        mv.SubscriptionList,
    ),
    read("workflow_promises", f"{ONE}/promises", "messages.promises", _EX, "Its promises", mv.PromiseList),
)
