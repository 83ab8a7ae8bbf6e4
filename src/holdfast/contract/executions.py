"""Executions: start, signal, cancel, terminate, look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta, Raw

from holdfast.config import Limits
from holdfast.contract.calls import QueryExecution, RequestUpdate, UpdateOutcome, UpdateStatus, UpdateTicket
from holdfast.contract.fields import (
    LARGEST,
    NAME_SCHEMA,
    Check,
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
from holdfast.contract.operation import EXECUTION, EXECUTIONS, POST, Record, Request, operation, public_names
from holdfast.errors import InvalidRequest
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Execution, Status, TaskRow, TimerRow
from holdfast.model.keys import Role
from holdfast.model.names import check_name
from holdfast.model.standalone import PREFIX
from holdfast.model.values import NULL, IfClosed, IfRunning

EXECUTIONS_TAG = "workflow executions"
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
EventNumber = Annotated[int, Meta(gt=-LARGEST, lt=LARGEST, extra_json_schema={"minimum": 1})]
"""The number of an event. Only a history tells which numbers will do."""


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


class UnreadSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal nobody has read. `age` is in microseconds; `reason` says why it is a dead letter, if it is one."""

    seq: int
    signal_name: str
    signal_value: Raw = NULL
    received_at: int
    age: int
    sender: str | None = None
    reason: str | None = None


class MailboxAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest unread signals of an execution, and how many there are in all of each name. Not `complete` if no
    worker could be asked: then they are those no turn has seen."""

    workflow_execution_id: str
    signals: tuple[UnreadSignal, ...]
    counts: dict[str, int]
    complete: bool


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first; `now` is the engine's time, to tell their age by."""

    letters: tuple[DeadLetter, ...]
    now: int


class RedeliverSignal(msgspec.Struct, frozen=True, kw_only=True):
    """Give a dead letter to the open execution with the same workflow id, or to the execution or workflow id `to`."""

    org: str
    workflow_execution_id: str
    seq: int
    to: str | None = None


class Redelivered(msgspec.Struct, frozen=True):
    """Where the signal is now."""

    workflow_execution_id: str
    signal_event_sequence: int


class RemoveDeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    workflow_execution_id: str
    seq: int


class BuryUnread(msgspec.Struct, frozen=True, kw_only=True):
    """Make dead letters of what a closed execution has left unread."""

    org: str
    workflow_execution_id: str
    reason: str


class ListExecutions(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    statuses: tuple[Status, ...] = ()
    kinds: tuple[str, ...] = ()
    workflow_id: str | None = None
    queue: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    created_from: int | None = None
    created_before: int | None = None
    cursor: str | None = None
    limit: int = 100


class ExecutionPage(msgspec.Struct, frozen=True):
    """One page, newest first. `next_cursor` is None on the last one."""

    items: tuple[Execution, ...]
    next_cursor: str | None = None


class Outcome(msgspec.Struct, frozen=True):
    """How a closed execution ended: its last event."""

    status: Status
    last_event: HistoryEvent


class Executions(Protocol):
    """`using` is an open connection of the application's to the engine's own database: the operation becomes part of
    its transaction. Only an engine in the same process can take one. With one that blocks (`sqlite3`) the call is done
    without ever waiting on the event loop."""

    def get(self, org: str, execution_id: str) -> Awaitable[Execution]: ...

    def find(self, org: str, workflow_id: str) -> Awaitable[Execution]: ...

    def count(self, org: str) -> Awaitable[dict[Status, int]]: ...

    def request_update(self, request: RequestUpdate) -> Awaitable[UpdateTicket]:
        """Answered when the request is recorded, before the program has seen it."""
        ...

    def update_outcome(self, org: str, ticket: UpdateTicket, wait_for: UpdateStatus) -> Awaitable[UpdateOutcome]:
        """Waits until the update is final or has got as far as `wait_for`. With REQUESTED it only looks."""
        ...

    def query(self, request: QueryExecution) -> Awaitable[Raw]:
        """The answer of the program, which is asked in a worker and stays as it is."""
        ...

    def state(self, org: str, execution_id: str, as_of: int | None = None) -> Awaitable[dict[str, Raw]]:
        """What the program shows in `ctx.state`."""
        ...

    def history(
        self, org: str, execution_id: str, after: int = 0, limit: int | None = None, types: Sequence[str] = ()
    ) -> Awaitable[list[HistoryEvent]]: ...

    def follow(self, org: str, execution_id: str, after: int = 0) -> AsyncIterator[list[HistoryEvent]]:
        """Its events after a number, as they come, until it is closed. See `Feeds.history`."""
        ...

    def tasks(self, org: str, execution_id: str) -> Awaitable[list[TaskRow]]: ...

    def timers(self, org: str, execution_id: str) -> Awaitable[list[TimerRow]]: ...

    def mailbox(self, org: str, execution_id: str, limit: int = 100) -> Awaitable[MailboxAnswer]:
        """What it has not read: of an open execution, its queues; of a closed one, its dead letters."""
        ...

    def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> Awaitable[DeadLetters]: ...

    def redeliver(self, request: RedeliverSignal) -> Awaitable[Redelivered]: ...

    def remove_dead_letter(self, request: RemoveDeadLetter) -> Awaitable[None]: ...

    def bury_unread(self, request: BuryUnread) -> Awaitable[int]:
        """How many dead letters were made."""
        ...

    def outcome(self, org: str, execution_id: str) -> Awaitable[Outcome]:
        """Waits until the execution is closed."""
        ...

    # Last, so that `list` means the type in the annotations above.
    def list(self, request: ListExecutions) -> Awaitable[ExecutionPage]: ...
