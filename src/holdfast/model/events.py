"""What happened to an execution, one struct per event type.

Engine-written events record what came from outside; worker-written ones record what a turn did and carry `up_to`, the
number of the last event that turn had seen. Replay recreates the turns from these numbers (docs/architecture.md).

A type's VERSION goes up when old rows could no longer be read as they are; `upcast` then brings them up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw

from holdfast.errors import EventTooNew
from holdfast.model.values import (
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    NULL,
    DeliveryMode,
    Failure,
    IfRunning,
    ParentClose,
    RetryPolicy,
    Settlement,
    TaskTimeouts,
    Wait,
)


class EventBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all event types share: a name in the history, a version, who writes it."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    TERMINAL: ClassVar[bool] = False


# --- written by the engine ----------------------------------------------------------------------------------------


class WorkflowStarted(EventBody, frozen=True, kw_only=True):
    TYPE = "WORKFLOW_STARTED"
    kind: str
    version: str = "1"
    workflow_id: str
    queue: str = "default"
    input: Raw = NULL
    metadata: dict[str, str] | None = None
    request_id: str | None = None
    parent_execution_id: str | None = None
    child_no: int = 0
    depth: int = 0
    continued_from: str | None = None
    expires_at: int | None = None
    start_at: int | None = None
    seed: str | None = None
    """What `ctx.random` is drawn from, where it is not this execution's own id: after a reset or fork."""
    event_id: int | None = None
    """The published event that started it, if one did."""
    born: int = 0
    """The last number that had been given to an event, wait or broadcast when it, or its first run, began."""
    had: tuple[int, ...] = ()
    """Published events that the runs before it have had, after continue-as-new."""


class SignalReceived(EventBody, frozen=True, kw_only=True):
    """`sender` is the execution that sent it, if one did; `carried_from` its number in the run before, after
    continue-as-new or a reset; or, if it was a dead letter, in the execution it was `redelivered_from`."""

    TYPE = "SIGNAL_RECEIVED"
    signal_name: str
    signal_value: Raw = NULL
    request_id: str | None = None
    sender: str | None = None
    carried_from: int | None = None
    redelivered_from: str | None = None


class TimerFired(EventBody, frozen=True, kw_only=True):
    TYPE = "TIMER_FIRED"
    timer_no: int


class TaskCompleted(EventBody, frozen=True, kw_only=True):
    TYPE = "TASK_COMPLETED"
    task_no: int
    result: Raw = NULL
    attempt: int = 1
    worker: str = ""


class TaskFailed(EventBody, frozen=True, kw_only=True):
    """The last attempt failed; `timeout` names the limit when one was passed."""

    TYPE = "TASK_FAILED"
    task_no: int
    failure: Failure
    attempt: int = 1
    timeout: str = ""
    worker: str = ""


class ChildCompleted(EventBody, frozen=True, kw_only=True):
    TYPE = "CHILD_COMPLETED"
    child_no: int
    child_execution_id: str
    result: Raw = NULL


class ChildFailed(EventBody, frozen=True, kw_only=True):
    """The child ended without a result, or (`not_started`) never began. `status` is how: failed, cancelled, terminated,
    timed_out or not_started."""

    TYPE = "CHILD_FAILED"
    child_no: int
    child_execution_id: str
    status: str
    failure: Failure


class ExternalSignalDelivered(EventBody, frozen=True, kw_only=True):
    TYPE = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_COMPLETED"
    signal_no: int
    target_execution_id: str
    signal_event_sequence: int


class ExternalSignalFailed(EventBody, frozen=True, kw_only=True):
    """Not delivered: the target is unknown, closed, or has reached its limit."""

    TYPE = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"
    signal_no: int
    failure: Failure


class UpdateRequested(EventBody, frozen=True, kw_only=True):
    TYPE = "UPDATE_REQUESTED"
    update_id: str
    update_name: str
    input: Raw = NULL
    carried_from: int | None = None


class PromiseResolved(EventBody, frozen=True, kw_only=True):
    TYPE = "PROMISE_RESOLVED"
    promise_no: int
    name: str
    value: Raw = NULL
    settled_by: Settlement | None = None


class PromiseRejected(EventBody, frozen=True, kw_only=True):
    TYPE = "PROMISE_REJECTED"
    promise_no: int
    name: str
    failure: Failure
    settled_by: Settlement | None = None


class PromiseTimedOut(EventBody, frozen=True, kw_only=True):
    TYPE = "PROMISE_TIMED_OUT"
    promise_no: int
    name: str


class EventReceived(EventBody, frozen=True, kw_only=True):
    """A published event, or (with `correlation`) a message, that a wait has got."""

    TYPE = "EVENT_RECEIVED"
    wait_no: int
    key: str
    event_id: int
    data: Raw = NULL
    correlation: str | None = None


class BroadcastReceived(EventBody, frozen=True, kw_only=True):
    TYPE = "BROADCAST_RECEIVED"
    wait_no: int
    name: str
    broadcast_id: int


class CancelRequested(EventBody, frozen=True, kw_only=True):
    TYPE = "CANCEL_REQUESTED"
    reason: str = ""


class WorkflowReset(EventBody, frozen=True, kw_only=True):
    """All before this event was taken over from another execution, up to its event `event_seq`; up to here the program
    was that one, with its ids. From here on it is this one, under `workflow_id`."""

    TYPE = "WORKFLOW_RESET"
    from_execution_id: str
    event_seq: int
    workflow_id: str = ""
    reason: str = ""
    fork: bool = False


class WorkflowTerminated(EventBody, frozen=True, kw_only=True):
    """`successor` is the execution that goes on in its place after a reset."""

    TYPE = "WORKFLOW_TERMINATED"
    TERMINAL = True
    reason: str = ""
    successor: str | None = None


class WorkflowTimedOut(EventBody, frozen=True, kw_only=True):
    TYPE = "WORKFLOW_TIMED_OUT"
    TERMINAL = True
    expires_at: int = 0


# --- written by the worker that holds the execution ---------------------------------------------------------------


class TurnEvent(EventBody, frozen=True, kw_only=True):
    """Written by a turn; `up_to` is the last event the turn had seen."""

    up_to: int


class TaskScheduled(TurnEvent, frozen=True, kw_only=True):
    TYPE = "TASK_SCHEDULED"
    task_no: int
    kind: str
    input: Raw = NULL
    queue: str = "default"
    priority: int = 0
    retry: RetryPolicy = DEFAULT_TASK_RETRY
    timeouts: TaskTimeouts = DEFAULT_TIMEOUTS
    line: str = ""


class TaskCancelRequested(TurnEvent, frozen=True, kw_only=True):
    TYPE = "TASK_CANCEL_REQUESTED"
    task_no: int
    line: str = ""


class TimerStarted(TurnEvent, frozen=True, kw_only=True):
    TYPE = "TIMER_STARTED"
    timer_no: int
    fire_at: int
    line: str = ""


class TimerCancelled(TurnEvent, frozen=True, kw_only=True):
    TYPE = "TIMER_CANCELLED"
    timer_no: int
    line: str = ""


class ChildStarted(TurnEvent, frozen=True, kw_only=True):
    """A child was asked for; written in the transaction that began it, or followed by CHILD_FAILED (not_started)."""

    TYPE = "CHILD_STARTED"
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


class ChildCancelRequested(TurnEvent, frozen=True, kw_only=True):
    TYPE = "CHILD_CANCEL_REQUESTED"
    child_no: int
    line: str = ""


class ExternalSignalInitiated(TurnEvent, frozen=True, kw_only=True):
    """`target` is a workflow id or an execution id; for one of its own children `child_no` says which."""

    TYPE = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED"
    signal_no: int
    target: str
    signal_name: str
    signal_value: Raw = NULL
    child_no: int = 0
    line: str = ""


class PromiseCreated(TurnEvent, frozen=True, kw_only=True):
    """The token itself is nowhere stored; `timer_no` is the timer that ends the wait for it, if there is one; `shape`
    is what a value must look like, see `model.shapes`."""

    TYPE = "PROMISE_CREATED"
    promise_no: int
    name: str
    token_hash: str
    event_key: str | None = None
    timer_no: int | None = None
    expires_at: int | None = None
    shape: Raw = NULL
    line: str = ""


class PromiseCancelled(TurnEvent, frozen=True, kw_only=True):
    TYPE = "PROMISE_CANCELLED"
    promise_no: int
    name: str
    line: str = ""


class WaitStarted(TurnEvent, frozen=True, kw_only=True):
    """`kind` is event, message or broadcast; `key` its key or name. A wait that looks back takes what was published
    since `since_at` and after the event `after_event_id`, except for `skip`: what this execution has had already.
    `born` tells events published before the execution began from later ones."""

    TYPE = "WAIT_STARTED"
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


class WaitCancelled(TurnEvent, frozen=True, kw_only=True):
    TYPE = "WAIT_CANCELLED"
    wait_no: int
    line: str = ""


class EventPublished(TurnEvent, frozen=True, kw_only=True):
    """Published by the workflow itself; a message, if there is a `correlation`."""

    TYPE = "EVENT_PUBLISHED"
    key: str
    event_id: int
    data: Raw = NULL
    correlation: str | None = None
    expire_after_s: float | None = None
    delivery: str = DeliveryMode.WAITERS_AND_FUTURE
    consume: bool = False
    line: str = ""


class BroadcastThrown(TurnEvent, frozen=True, kw_only=True):
    TYPE = "BROADCAST_THROWN"
    name: str
    broadcast_id: int
    line: str = ""


class UpdateAccepted(TurnEvent, frozen=True, kw_only=True):
    TYPE = "UPDATE_ACCEPTED"
    update_id: str


class UpdateRejected(TurnEvent, frozen=True, kw_only=True):
    """Refused by its validator, or no handler takes it: the workflow has not seen it."""

    TYPE = "UPDATE_REJECTED"
    update_id: str
    failure: Failure


class UpdateCompleted(TurnEvent, frozen=True, kw_only=True):
    TYPE = "UPDATE_COMPLETED"
    update_id: str
    result: Raw = NULL


class UpdateFailed(TurnEvent, frozen=True, kw_only=True):
    TYPE = "UPDATE_FAILED"
    update_id: str
    failure: Failure


class PatchMarked(TurnEvent, frozen=True, kw_only=True):
    TYPE = "PATCH_MARKED"
    patch_id: str
    line: str = ""


class StateChanged(TurnEvent, frozen=True, kw_only=True):
    """What the turn changed in `ctx.state`. An observation: replay neither needs nor compares it."""

    TYPE = "STATE_CHANGED"
    values: dict[str, Raw] = {}
    removed: tuple[str, ...] = ()


class MetadataChanged(TurnEvent, frozen=True, kw_only=True):
    """What the turn changed in the execution's metadata. Not compared either."""

    TYPE = "METADATA_CHANGED"
    values: dict[str, str] = {}
    removed: tuple[str, ...] = ()


class StepCompleted(TurnEvent, frozen=True, kw_only=True):
    TYPE = "STEP_COMPLETED"
    step_no: int
    name: str
    result: Raw = NULL
    attempts: int = 1
    started_at: int = 0
    finished_at: int = 0
    line: str = ""


class StepFailed(TurnEvent, frozen=True, kw_only=True):
    TYPE = "STEP_FAILED"
    step_no: int
    name: str
    failure: Failure
    attempts: int = 1
    started_at: int = 0
    finished_at: int = 0
    line: str = ""


StepFinished = StepCompleted | StepFailed
"""How a step ended. The worker makes the event itself: `up_to` is the turn that asked for the step."""


class TurnCompleted(TurnEvent, frozen=True, kw_only=True):
    """A turn that leaves no other row, or after which the execution went back to waiting."""

    TYPE = "WORKFLOW_TASK_COMPLETED"
    scheduled_at: int = 0
    started_at: int = 0
    worker: str = ""
    waiting_for: tuple[Wait, ...] = ()


class WorkflowCompleted(TurnEvent, frozen=True, kw_only=True):
    TYPE = "WORKFLOW_COMPLETED"
    TERMINAL = True
    result: Raw = NULL


class WorkflowFailed(TurnEvent, frozen=True, kw_only=True):
    TYPE = "WORKFLOW_FAILED"
    TERMINAL = True
    failure: Failure


class WorkflowCancelled(TurnEvent, frozen=True, kw_only=True):
    TYPE = "WORKFLOW_CANCELLED"
    TERMINAL = True
    reason: str = ""


class WorkflowContinued(TurnEvent, frozen=True, kw_only=True):
    """The execution goes on afresh as `new_execution_id`, with the same workflow id and the signals it left unread."""

    TYPE = "WORKFLOW_CONTINUED_AS_NEW"
    TERMINAL = True
    new_execution_id: str
    kind: str
    version: str
    input: Raw = NULL


class HistoryEvent(msgspec.Struct, frozen=True):
    """An event in its place: number, time, content."""

    seq: int
    at: int
    body: EventBody

    @property
    def type(self) -> str:
        return self.body.TYPE


EVENT_TYPES: Final[dict[str, type[EventBody]]] = {
    cls.TYPE: cls
    for cls in (
        WorkflowStarted,
        SignalReceived,
        TimerFired,
        TaskCompleted,
        TaskFailed,
        ChildCompleted,
        ChildFailed,
        ExternalSignalDelivered,
        ExternalSignalFailed,
        UpdateRequested,
        PromiseResolved,
        PromiseRejected,
        PromiseTimedOut,
        EventReceived,
        BroadcastReceived,
        CancelRequested,
        WorkflowReset,
        WorkflowTerminated,
        WorkflowTimedOut,
        TaskScheduled,
        TaskCancelRequested,
        TimerStarted,
        TimerCancelled,
        ChildStarted,
        ChildCancelRequested,
        ExternalSignalInitiated,
        PromiseCreated,
        PromiseCancelled,
        WaitStarted,
        WaitCancelled,
        EventPublished,
        BroadcastThrown,
        UpdateAccepted,
        UpdateRejected,
        UpdateCompleted,
        UpdateFailed,
        PatchMarked,
        StateChanged,
        MetadataChanged,
        StepCompleted,
        StepFailed,
        TurnCompleted,
        WorkflowCompleted,
        WorkflowFailed,
        WorkflowCancelled,
        WorkflowContinued,
    )
}

# (type, stored version) -> function from the old JSON object to the next version's.
UPCASTERS: Final[dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]] = {}

_ENCODE = msgspec.json.Encoder().encode
_DECODERS: Final = {name: msgspec.json.Decoder(cls).decode for name, cls in EVENT_TYPES.items()}


def encode_body(body: EventBody) -> bytes:
    return _ENCODE(body)


def decode_body(type_name: str, version: int, data: bytes | str) -> EventBody:
    """The event body of a stored row, brought up to the present version."""
    cls = EVENT_TYPES.get(type_name)
    if cls is None or version > cls.VERSION:
        raise EventTooNew(
            f"event type {type_name} version {version} is not known to this Holdfast: upgrade this program",
            type=type_name,
            version=version,
        )
    if version == cls.VERSION:
        return _DECODERS[type_name](data)
    fields = msgspec.json.decode(data)
    for old in range(version, cls.VERSION):
        fields = UPCASTERS[type_name, old](fields)
    return msgspec.convert(fields, cls)
