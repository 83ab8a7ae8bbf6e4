"""From a command of a turn to its event and its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.engine.rules import tasks
from holdfast.engine.rules.closing import close
from holdfast.engine.rules.workspace import Workspace
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.executions import Execution, State, TimerRow


def apply(ws: Workspace, execution: Execution, command: c.Command, up_to: int) -> None:
    _APPLY[type(command)](ws, execution, command, up_to)


def _schedule_task(ws: Workspace, execution: Execution, command: c.ScheduleTask, up_to: int) -> None:
    event = e.TaskScheduled(
        up_to=up_to,
        task_no=command.task_no,
        kind=command.kind,
        input=command.input,
        queue=command.queue,
        priority=command.priority,
        retry=command.retry,
        timeouts=command.timeouts,
        line=command.line,
    )
    ws.append(execution, event)
    tasks.schedule(ws, execution, event)


def _cancel_task(ws: Workspace, execution: Execution, command: c.CancelTask, up_to: int) -> None:
    ws.append(execution, e.TaskCancelRequested(up_to=up_to, task_no=command.task_no, line=command.line))
    task = ws.loaded.tasks.get((execution.id, command.task_no))
    if task is not None:
        tasks.cancel(ws, execution, task)


def _start_timer(ws: Workspace, execution: Execution, command: c.StartTimer, up_to: int) -> None:
    ws.append(
        execution,
        e.TimerStarted(up_to=up_to, timer_no=command.timer_no, fire_at=command.fire_at, line=command.line),
    )
    ws.add_timer(
        execution,
        TimerRow(execution_id=execution.id, timer_no=command.timer_no, org=execution.org, fire_at=command.fire_at),
    )


def _cancel_timer(ws: Workspace, execution: Execution, command: c.CancelTimer, up_to: int) -> None:
    ws.append(execution, e.TimerCancelled(up_to=up_to, timer_no=command.timer_no, line=command.line))
    ws.drop_timer(execution, command.timer_no)


def _complete_workflow(ws: Workspace, execution: Execution, command: c.CompleteWorkflow, up_to: int) -> None:
    close(ws, execution, State.COMPLETED, e.WorkflowCompleted(up_to=up_to, result=command.result))


def _fail_workflow(ws: Workspace, execution: Execution, command: c.FailWorkflow, up_to: int) -> None:
    close(ws, execution, State.FAILED, e.WorkflowFailed(up_to=up_to, failure=command.failure))


def _cancel_workflow(ws: Workspace, execution: Execution, command: c.CancelWorkflow, up_to: int) -> None:
    close(ws, execution, State.CANCELLED, e.WorkflowCancelled(up_to=up_to, reason=command.reason))


_APPLY: dict[type[Any], Callable[[Workspace, Execution, Any, int], None]] = {
    c.ScheduleTask: _schedule_task,
    c.CancelTask: _cancel_task,
    c.StartTimer: _start_timer,
    c.CancelTimer: _cancel_timer,
    c.CompleteWorkflow: _complete_workflow,
    c.FailWorkflow: _fail_workflow,
    c.CancelWorkflow: _cancel_workflow,
}
