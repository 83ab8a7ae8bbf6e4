"""What a program asks for in a turn. The engine turns each into an event and the rows that go with it."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from holdfast.model.values import (
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    NULL,
    DeliveryMode,
    Failure,
    IfRunning,
    ParentClose,
    RetryPolicy,
    TaskTimeouts,
)


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


class StartChild(msgspec.Struct, frozen=True, kw_only=True, tag="start_child"):
    child_no: int
    child_execution_id: str
    kind: str
    version: str | None = None
    workflow_id: str | None = None
    input: Raw = NULL
    queue: str = "default"
    priority: int = 0
    metadata: dict[str, str] | None = None
    execution_timeout_s: float | None = None
    on_parent_close: str = ParentClose.DEFAULT
    if_running: str = IfRunning.FAIL
    propagate_failure: bool = True
    depth: int = 1
    line: str = ""


class CancelChild(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_child"):
    child_no: int
    line: str = ""


class SignalExternal(msgspec.Struct, frozen=True, kw_only=True, tag="signal_external"):
    """`target` is a workflow id or an execution id; for one of its own children `child_no` says which."""

    signal_no: int
    target: str
    signal_name: str
    signal_value: Raw = NULL
    child_no: int = 0
    line: str = ""


class CreatePromise(msgspec.Struct, frozen=True, kw_only=True, tag="create_promise"):
    promise_no: int
    name: str
    token_hash: str
    event_key: str | None = None
    timer_no: int | None = None
    expires_at: int | None = None
    shape: Raw = NULL
    line: str = ""


class CancelPromise(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_promise"):
    promise_no: int
    name: str
    line: str = ""


class StartWait(msgspec.Struct, frozen=True, kw_only=True, tag="start_wait"):
    """See events.WaitStarted."""

    wait_no: int
    kind: str
    key: str
    correlation: str | None = None
    where: str | None = None
    since_at: int | None = None
    after_event_id: int = 0
    skip: tuple[int, ...] = ()
    born: int = 0
    consume: bool = False
    line: str = ""


class CancelWait(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_wait"):
    wait_no: int
    line: str = ""


class Publish(msgspec.Struct, frozen=True, kw_only=True, tag="publish"):
    key: str
    data: Raw = NULL
    correlation: str | None = None
    expire_after_s: float | None = None
    delivery: str = DeliveryMode.WAITERS_AND_FUTURE
    consume: bool = False
    line: str = ""


class ThrowBroadcast(msgspec.Struct, frozen=True, kw_only=True, tag="throw_broadcast"):
    name: str
    line: str = ""


class AcceptUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="accept_update"):
    update_id: str


class RejectUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="reject_update"):
    update_id: str
    failure: Failure


class CompleteUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="complete_update"):
    update_id: str
    result: Raw = NULL


class FailUpdate(msgspec.Struct, frozen=True, kw_only=True, tag="fail_update"):
    update_id: str
    failure: Failure


class MarkPatch(msgspec.Struct, frozen=True, kw_only=True, tag="mark_patch"):
    patch_id: str
    line: str = ""


class ChangeState(msgspec.Struct, frozen=True, kw_only=True, tag="change_state"):
    values: dict[str, Raw] = {}
    removed: tuple[str, ...] = ()


class ChangeMetadata(msgspec.Struct, frozen=True, kw_only=True, tag="change_metadata"):
    values: dict[str, str] = {}
    removed: tuple[str, ...] = ()


class CompleteWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="complete_workflow"):
    result: Raw = NULL


class FailWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="fail_workflow"):
    failure: Failure


class CancelWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_workflow"):
    reason: str = ""


class ContinueWorkflow(msgspec.Struct, frozen=True, kw_only=True, tag="continue_workflow"):
    """Begin afresh under the same workflow id, with the version registered last and this run's queue unless given.

    `born` and `had` tell the next run which published events were for this workflow, and which it has had.
    """

    input: Raw = NULL
    kind: str
    version: str | None = None
    queue: str | None = None
    depth: int = 0
    born: int = 0
    had: tuple[int, ...] = ()


Command = (
    ScheduleTask
    | CancelTask
    | StartTimer
    | CancelTimer
    | StartChild
    | CancelChild
    | SignalExternal
    | CreatePromise
    | CancelPromise
    | StartWait
    | CancelWait
    | Publish
    | ThrowBroadcast
    | AcceptUpdate
    | RejectUpdate
    | CompleteUpdate
    | FailUpdate
    | MarkPatch
    | ChangeState
    | ChangeMetadata
    | CompleteWorkflow
    | FailWorkflow
    | CancelWorkflow
    | ContinueWorkflow
)
CLOSING = (CompleteWorkflow, FailWorkflow, CancelWorkflow, ContinueWorkflow)
OBSERVATIONS = (ChangeState, ChangeMetadata)
"""What a program lets others see. Recorded, but replay does not compare it: what it shows may change with the code."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn's commands, in the order in which the program made them."""

    up_to: int
    commands: tuple[Command, ...] = ()
    scheduled_at: int = 0
    started_at: int = 0
