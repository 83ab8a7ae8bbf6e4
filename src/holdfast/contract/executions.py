"""Executions: start, signal, cancel, terminate, look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from holdfast.contract.calls import QueryExecution, RequestUpdate, UpdateOutcome, UpdateStatus, UpdateTicket
from holdfast.contract.task_output import OutputPage, TaskFeedItem
from holdfast.model.events import HistoryEvent
from holdfast.model.executions import DeadLetter, Execution, TaskRow, TimerRow, WorkflowStatus
from holdfast.model.values import NULL, IfClosed, IfRunning


class StartWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """Start an execution, or find the open one that has this workflow id.

    `request_id` makes a retry of this very call harmless: it answers what the first one did. It does not begin before
    `start_at`, and is ended when `execution_timeout_s` have passed since then.
    """

    org: str
    kind: str
    version: str | None = None
    workflow_id: str | None = None
    input: Raw = NULL
    queue: str = "default"
    priority: int = 0
    metadata: dict[str, str] | None = None
    execution_timeout_s: float | None = None
    start_at: int | None = None
    if_running: IfRunning = IfRunning.USE_EXISTING
    if_closed: IfClosed = IfClosed.ALLOW
    ttl_s: float | None = None
    request_id: str | None = None


class StartAnswer(msgspec.Struct, frozen=True):
    """`idempotency_key_new` is False when this very call had been made before; the rest is then as it was answered
    first."""

    workflow_execution_id: str
    workflow_id: str
    workflow_created: bool
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class SignalWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """`addressed_to` is the execution that the caller has named, if another one goes on in its place: a repeat names it
    again."""

    org: str
    workflow_execution_id: str
    signal_name: str
    signal_value: Raw = NULL
    addressed_to: str | None = None
    request_id: str | None = None


class SignalResponse(msgspec.Struct, frozen=True):
    """`signal_event_sequence` is the number of the signal in the execution's history."""

    signal_event_sequence: int
    signal_delivered: bool = True


class SignalWithStart(msgspec.Struct, frozen=True, kw_only=True):
    """One atomic step: find the open execution of `workflow_id` or start it, and append the signal."""

    org: str
    workflow_id: str
    kind: str
    version: str | None = None
    input: Raw = NULL
    queue: str = "default"
    priority: int = 0
    metadata: dict[str, str] | None = None
    execution_timeout_s: float | None = None
    start_at: int | None = None
    if_closed: IfClosed = IfClosed.ALLOW
    ttl_s: float | None = None
    signal_name: str
    signal_value: Raw = NULL
    request_id: str | None = None


class SignalWithStartResponse(msgspec.Struct, frozen=True):
    workflow_execution_id: str
    workflow_created: bool
    signal_event_sequence: int
    signal_delivered: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class CancelExecution(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    workflow_execution_id: str
    reason: str = ""


class TerminateExecution(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    workflow_execution_id: str
    reason: str = ""


class ResumeExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Let a stuck execution be tried again at once."""

    org: str
    workflow_execution_id: str


class ResetExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Go on from event `to_event` as if nothing after it had happened: in a new execution with the same workflow id.

    An open execution is terminated for it. With `reapply_signals` the signals and updates that came after that event
    are received once more.
    """

    org: str
    workflow_execution_id: str
    to_event: int
    reason: str = ""
    reapply_signals: bool = True
    request_id: str | None = None


class ForkExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Begin a second execution with the past of another up to event `at_event`; that one is left alone."""

    org: str
    workflow_execution_id: str
    at_event: int
    workflow_id: str | None = None
    reapply_signals: bool = False
    request_id: str | None = None


class RetryExecution(msgspec.Struct, frozen=True, kw_only=True):
    """Try a closed execution that has no result again, from just before what ended it."""

    org: str
    workflow_execution_id: str
    reason: str = ""
    request_id: str | None = None


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


class RedeliverResult(msgspec.Struct, frozen=True):
    """Where the signal is now."""

    workflow_execution_id: str
    signal_event_sequence: int


class RemoveDeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    workflow_execution_id: str
    seq: int


class DeadLetterUnread(msgspec.Struct, frozen=True, kw_only=True):
    """Make dead letters of what a closed execution has left unread."""

    org: str
    workflow_execution_id: str
    reason: str


class Changed(msgspec.Struct, frozen=True):
    """Whether the call changed anything. `successor` goes on in the place of an execution that was closed already."""

    changed: bool
    successor: str | None = None


class ListExecutions(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    statuses: tuple[WorkflowStatus, ...] = ()
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

    status: WorkflowStatus
    last_event: HistoryEvent


class Executions(Protocol):
    """`using` is an open connection of the application's to the engine's own database: the operation becomes part of
    its transaction. Only an engine in the same process can take one. With one that blocks (`sqlite3`) the call is done
    without ever waiting on the event loop."""

    def start(self, request: StartWorkflow, using: Any = None) -> Awaitable[StartAnswer]: ...

    def signal(self, request: SignalWorkflow, using: Any = None) -> Awaitable[SignalResponse]: ...

    def signal_with_start(self, request: SignalWithStart, using: Any = None) -> Awaitable[SignalWithStartResponse]: ...

    def cancel(self, request: CancelExecution) -> Awaitable[Changed]: ...

    def terminate(self, request: TerminateExecution) -> Awaitable[Changed]: ...

    def resume(self, request: ResumeExecution) -> Awaitable[Changed]: ...

    def reset(self, request: ResetExecution) -> Awaitable[StartAnswer]: ...

    def fork(self, request: ForkExecution) -> Awaitable[StartAnswer]: ...

    def retry(self, request: RetryExecution) -> Awaitable[StartAnswer]: ...

    def get(self, org: str, execution_id: str) -> Awaitable[Execution]: ...

    def find(self, org: str, workflow_id: str) -> Awaitable[Execution]: ...

    def count(self, org: str) -> Awaitable[dict[WorkflowStatus, int]]: ...

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

    def task_output(
        self, org: str, execution_id: str, task_no: int, after: int = 0, limit: int = 100
    ) -> Awaitable[OutputPage]:
        """What is kept of what a task has said, after a number. Raises ExecutionNotFound, TaskNotFound."""
        ...

    def follow_task(
        self, org: str, execution_id: str, task_no: int, after: int = 0
    ) -> AsyncIterator[list[TaskFeedItem]]:
        """What a task says and how it goes, in pieces, until it has ended; `after` is the number of the last chunk that
        is known. The present attempt and progress are told to whoever comes. Raises as `task_output`.

        Any number may follow one task at the cost of one; nothing of the database is held while there is nothing new.
        """
        ...

    def timers(self, org: str, execution_id: str) -> Awaitable[list[TimerRow]]: ...

    def mailbox(self, org: str, execution_id: str, limit: int = 100) -> Awaitable[MailboxAnswer]:
        """What it has not read: of an open execution, its queues; of a closed one, its dead letters."""
        ...

    def dead_letters(self, org: str, execution_id: str | None = None, limit: int = 100) -> Awaitable[DeadLetters]: ...

    def redeliver(self, request: RedeliverSignal) -> Awaitable[RedeliverResult]: ...

    def remove_dead_letter(self, request: RemoveDeadLetter) -> Awaitable[None]: ...

    def dead_letter_unread(self, request: DeadLetterUnread) -> Awaitable[int]:
        """How many dead letters were made."""
        ...

    def outcome(self, org: str, execution_id: str) -> Awaitable[Outcome]:
        """Waits until the execution is closed."""
        ...

    # Last, so that `list` means the type in the annotations above.
    def list(self, request: ListExecutions) -> Awaitable[ExecutionPage]: ...
