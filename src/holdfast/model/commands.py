"""What a program asks for in a turn. The engine turns each into an event and the rows that go with it."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from holdfast.model.values import DEFAULT_TASK_RETRY, DEFAULT_TIMEOUTS, NULL, Failure, RetryPolicy, TaskTimeouts


class ScheduleTask(msgspec.Struct, frozen=True, kw_only=True, tag="schedule_task"):
    task_no: int
    kind: str
    input: Raw = NULL
    queue: str = "default"
    priority: int = 0
    retry: RetryPolicy = DEFAULT_TASK_RETRY
    timeouts: TaskTimeouts = DEFAULT_TIMEOUTS
    line: str = ""


class CancelTask(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_task"):
    task_no: int
    line: str = ""


class StartTimer(msgspec.Struct, frozen=True, kw_only=True, tag="start_timer"):
    timer_no: int
    fire_at: int
    line: str = ""


class CancelTimer(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_timer"):
    timer_no: int
    line: str = ""


class CompleteWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="complete_workflow"):
    result: Raw = NULL


class FailWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="fail_workflow"):
    failure: Failure


class CancelWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_workflow"):
    reason: str = ""


Command = ScheduleTask | CancelTask | StartTimer | CancelTimer | CompleteWorkflow | FailWorkflow | CancelWorkflow
CLOSING = (CompleteWorkflow, FailWorkflow, CancelWorkflow)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn's commands, in the order in which the program made them."""

    up_to: int
    commands: tuple[Command, ...] = ()
    scheduled_at: int = 0
    started_at: int = 0
