"""The table's rows about standalone tasks. `task_execution_id` is the id of the task's execution, or its task id."""

from __future__ import annotations

from typing import Final

from holdfast.api.operation import ORG, do, read
from holdfast.contract.executions import Changed
from holdfast.wire.rest import bodies as b
from holdfast.wire.rest import message_views as mv
from holdfast.wire.rest import task_output_views as ov
from holdfast.wire.rest import task_views as tv

TASKS: Final = f"{ORG}/tasks"
ONE_TASK: Final = f"{TASKS}/{{task_execution_id}}"
_TA: Final = "tasks"
_START: Final = {
    "task_kind": "send_invoice",
    "task_id": "invoice:7",
    "input": {"order": 7},
    "retry": {"max_attempts": 5},
    "start_to_close_seconds": 60,
}

TASK_OPERATIONS: Final = (
    do(
        "start_task",
        TASKS,
        "tasks.start",
        _TA,
        "Run a task on its own, or find the one with this task id that is not over",
        tv.StartTaskBody,
        tv.StartTaskView,
        status=201,
        payload=True,
        example=_START,
    ),
    read(
        "list_tasks",
        TASKS,
        "tasks.list",
        _TA,
        "One page of standalone tasks, the newest first",
        tv.StandaloneTaskPage,
        query=tv.TasksQuery,
    ),
    read("get_task", ONE_TASK, "tasks.get", _TA, "One standalone task, by either of its ids", tv.StandaloneTaskView),
    read(
        "task_result",
        f"{ONE_TASK}/result",
        "tasks.outcome",
        _TA,
        "How the task ended; with `wait`, as soon as it has",
        tv.TaskResultView,
        query=b.WaitQuery,
        waits=True,
    ),
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
    do(
        "complete_task",
        f"{ONE_TASK}/complete",
        "tasks.settle",
        _TA,
        "Give the result of an attempt that was left to somebody else",
        tv.CompleteTaskBody,
        mv.SettledView,
        payload=True,
        example={"result": {"paid": True}, "request_id": "call-1"},
    ),
    do(
        "fail_task",
        f"{ONE_TASK}/fail",
        "tasks.settle",
        _TA,
        "Fail an attempt that was left to somebody else",
        tv.FailTaskBody,
        mv.SettledView,
        payload=True,
        example={"error": "the bank has refused"},
    ),
    do(
        "cancel_task",
        f"{ONE_TASK}/cancel",
        "tasks.cancel",
        _TA,
        "Stop a standalone task",
        b.ReasonBody,
        Changed,
        example={"reason": "not wanted any more"},
    ),
)
