"""Executions: start, signal, cancel, terminate, resume, reset, fork, retry."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.config import Limits
from holdfast.contract.fields import (
    NAME_SCHEMA,
    Check,
    EventNumber,
    Instant,
    KeyTtl,
    Name,
    Payload,
    Priority,
    Seconds,
    Tags,
    Text,
    null,
)
from holdfast.contract.history import EXECUTIONS_TAG
from holdfast.contract.operation import EXECUTION, EXECUTIONS, POST, Record, Request, operation, public_names
from holdfast.errors import InvalidRequest
from holdfast.model.keys import Role
from holdfast.model.names import check_name
from holdfast.model.standalone import PREFIX
from holdfast.model.values import IfClosed, IfRunning

START_NAMES = public_names(kind="workflow_kind", version="workflow_version", input="workflow_input")


def _kind(value: str, field: str, _: Limits) -> None:
    check_name(value, field)
    if value.startswith(PREFIX):
        raise InvalidRequest(
            f"workflow kinds that begin with {PREFIX!r} are the engine's own, as {value!r:.60} is: start_task() runs a "
            "task on its own",
            field=field,
        )


Kind = Annotated[str, Meta(extra_json_schema=NAME_SCHEMA), Check(_kind, "workflow_kind")]
"""A workflow kind that callers may ask for."""


class StartAnswer(Record, frozen=True):
    """`idempotency_key_new` is False when this very call had been made before; the rest is then as it was answered
    first."""

    workflow_execution_id: str
    workflow_id: str
    workflow_created: bool
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


@operation(
    "start_workflow",
    POST,
    EXECUTIONS,
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    status=201,
    payload=True,
    example={"workflow_kind": "order", "workflow_id": "order:7", "workflow_input": {"item": "tea"}},
)
class StartWorkflow(Request[StartAnswer], frozen=True, kw_only=True, rename=START_NAMES):
    """Start a workflow, or find the open execution of its workflow id.

    `request_id` makes a retry of this very call harmless: it answers what the first one did. It does not begin before
    `start_at`, and is ended when `execution_timeout_s` have passed since then.
    """

    kind: Kind
    version: Name | None = None
    workflow_id: Name | None = None
    input: Payload = msgspec.field(default_factory=null)
    queue: Name = "default"
    priority: Priority = 0
    metadata: Tags | None = None
    execution_timeout_s: Seconds | None = None
    start_at: Instant | None = None
    if_running: IfRunning = IfRunning.USE_EXISTING
    if_closed: IfClosed = IfClosed.ALLOW
    ttl_s: KeyTtl | None = None
    request_id: Name | None = None


class SignalResponse(Record, frozen=True):
    """`signal_event_sequence` is the number of the signal in the execution's history."""

    signal_event_sequence: int
    signal_delivered: bool = True


@operation(
    "signal_workflow",
    POST,
    f"{EXECUTION}/signal",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    payload=True,
    example={"signal_name": "message", "signal_value": {"text": "Hello again!"}},
)
class SignalWorkflow(Request[SignalResponse], frozen=True, kw_only=True):
    """Send a signal to an open execution.

    `addressed_to` is the execution that the caller has named, if another one goes on in its place: a repeat names it
    again.
    """

    workflow_execution_id: Name
    signal_name: Name
    signal_value: Payload = msgspec.field(default_factory=null)
    addressed_to: Name | None = None
    request_id: Name | None = None


class SignalWithStartResponse(Record, frozen=True):
    workflow_execution_id: str
    workflow_created: bool
    signal_event_sequence: int
    signal_delivered: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


@operation(
    "signal_with_start",
    POST,
    f"{EXECUTIONS}/signal-with-start",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    rpc="SignalWithStartWorkflow",
    payload=True,
    example={
        "workflow_id": "conversation:conv-123",
        "workflow_kind": "chatbot-conversation",
        "workflow_input": {"conversation_id": "conv-123", "user_id": "user-456"},
        "queue": "default",
        "signal_name": "message",
        "signal_value": {"text": "Hello!", "timestamp": 1706380800000},
        "metadata": {"channel": "web"},
    },
)
class SignalWithStart(Request[SignalWithStartResponse], frozen=True, kw_only=True, rename=START_NAMES):
    """Signal the open execution of a workflow id, starting it first if there is none: one atomic step."""

    workflow_id: Name
    kind: Kind
    version: Name | None = None
    input: Payload = msgspec.field(default_factory=null)
    queue: Name = "default"
    priority: Priority = 0
    metadata: Tags | None = None
    execution_timeout_s: Seconds | None = None
    start_at: Instant | None = None
    if_closed: IfClosed = IfClosed.ALLOW
    ttl_s: KeyTtl | None = None
    signal_name: Name
    signal_value: Payload = msgspec.field(default_factory=null)
    request_id: Name | None = None


class Changed(Record, frozen=True):
    """Whether the call changed anything. `successor` goes on in the place of an execution that was closed already."""

    changed: bool
    successor: str | None = None


@operation(
    "cancel_workflow",
    POST,
    f"{EXECUTION}/cancel",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    example={"reason": "not wanted any more"},
)
class CancelExecution(Request[Changed], frozen=True, kw_only=True):
    """Ask an execution to stop."""

    workflow_execution_id: Name
    reason: Text = ""


@operation(
    "terminate_workflow",
    POST,
    f"{EXECUTION}/terminate",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    example={"reason": "stuck for good"},
)
class TerminateExecution(Request[Changed], frozen=True, kw_only=True):
    """End an execution at once, without asking it."""

    workflow_execution_id: Name
    reason: Text = ""


@operation("resume_workflow", POST, f"{EXECUTION}/resume", Role.WRITER, tag=EXECUTIONS_TAG)
class ResumeExecution(Request[Changed], frozen=True, kw_only=True):
    """Let a stuck execution be tried again at once."""

    workflow_execution_id: Name


@operation(
    "reset_workflow",
    POST,
    f"{EXECUTION}/reset",
    Role.ADMIN,
    tag=EXECUTIONS_TAG,
    status=201,
    example={"to_event": 3, "reason": "wrong address"},
)
class ResetExecution(Request[StartAnswer], frozen=True, kw_only=True):
    """Go on from an event as if nothing after it had happened, in a new execution.

    The new execution has the same workflow id; an open one is terminated for it. With `reapply_signals` the signals and
    updates that came after that event are received once more.
    """

    workflow_execution_id: Name
    to_event: EventNumber
    reason: Text = ""
    reapply_signals: bool = True
    request_id: Name | None = None


@operation(
    "fork_workflow",
    POST,
    f"{EXECUTION}/fork",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    status=201,
    example={"at_event": 3, "workflow_id": "order:7:again"},
)
class ForkExecution(Request[StartAnswer], frozen=True, kw_only=True):
    """Begin a second execution with the past of this one.

    It begins after event `at_event`; the execution itself is left alone.
    """

    workflow_execution_id: Name
    at_event: EventNumber
    workflow_id: Name | None = None
    reapply_signals: bool = False
    request_id: Name | None = None


@operation(
    "retry_workflow",
    POST,
    f"{EXECUTION}/retry",
    Role.WRITER,
    tag=EXECUTIONS_TAG,
    status=201,
    example={"reason": "the service is back"},
)
class RetryExecution(Request[StartAnswer], frozen=True, kw_only=True):
    """Try a closed execution that has no result again, from just before what ended it."""

    workflow_execution_id: Name
    reason: Text = ""
    request_id: Name | None = None
