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

from holdfast.errors import StorageError
from holdfast.model.values import (
    DEFAULT_TASK_RETRY,
    DEFAULT_TIMEOUTS,
    NULL,
    Failure,
    RetryPolicy,
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


class SignalReceived(EventBody, frozen=True, kw_only=True):
    TYPE = "SIGNAL_RECEIVED"
    signal_name: str
    signal_value: Raw = NULL
    request_id: str | None = None


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


class CancelRequested(EventBody, frozen=True, kw_only=True):
    TYPE = "CANCEL_REQUESTED"
    reason: str = ""


class WorkflowTerminated(EventBody, frozen=True, kw_only=True):
    TYPE = "WORKFLOW_TERMINATED"
    TERMINAL = True
    reason: str = ""


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
        CancelRequested,
        WorkflowTerminated,
        TaskScheduled,
        TaskCancelRequested,
        TimerStarted,
        TimerCancelled,
        StepCompleted,
        StepFailed,
        TurnCompleted,
        WorkflowCompleted,
        WorkflowFailed,
        WorkflowCancelled,
    )
}

# (type, stored version) -> function from the old JSON object to the next version's.
UPCASTERS: Final[dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]] = {}

_ENCODE = msgspec.json.Encoder().encode
_DECODERS: Final = {name: msgspec.json.Decoder(cls).decode for name, cls in EVENT_TYPES.items()}


def encode_body(body: EventBody) -> bytes:
    return _ENCODE(body)


def decode_body(type_name: str, version: int, data: bytes) -> EventBody:
    """The event body of a stored row, brought up to the present version."""
    cls = EVENT_TYPES.get(type_name)
    if cls is None or version > cls.VERSION:
        raise StorageError(
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
