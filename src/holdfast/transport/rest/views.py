"""What the server answers, as JSON: instants as ISO 8601, payloads as the JSON they are.

Every view is made by a function of its name; `reading` goes the other way. What fences workers (epochs, nonces) is
left out: it is nobody's business out there.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Raw

from holdfast.contract import executions as ex
from holdfast.contract.calls import UpdateOutcome, UpdateStatus
from holdfast.model.executions import (
    NEVER,
    Execution,
    State,
    StuckReason,
    TaskRow,
    TimerRow,
    WorkflowStatus,
)
from holdfast.model.values import NULL, Failure, RetryPolicy, TaskTimeouts, Wait
from holdfast.transport.rest.bodies import null
from holdfast.transport.rest.events import EventView, event_view
from holdfast.transport.rest.times import instant, instant_or_none


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What all of them share. Fields a newer server adds are ignored by an older client."""


class WaitView(View, frozen=True, kw_only=True):
    """What an execution is blocked on."""

    kind: str
    name: str = ""
    number: int = 0
    line: str = ""
    until: datetime | None = None


class StuckView(View, frozen=True, kw_only=True):
    """Why an execution does not move."""

    code: str
    message: str
    at: datetime
    event_sequence: int = 0
    recorded: str = ""
    attempted: str = ""
    recorded_line: str = ""
    attempted_line: str = ""
    worker: str = ""
    build: str = ""


class ExecutionView(View, frozen=True, kw_only=True):
    """One execution. `successor` goes on in the place of one that is closed."""

    workflow_execution_id: str
    workflow_id: str
    workflow_kind: str
    workflow_version: str
    queue: str
    priority_seconds: int
    status: WorkflowStatus
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    start_at: datetime | None = None
    history_length: int = 0
    seen_length: int = 0
    signal_count: int = 0
    open_tasks: int = 0
    open_timers: int = 0
    open_children: int = 0
    open_waits: int = 0
    cancel_requested: bool = False
    waiting_for: tuple[WaitView, ...] = ()
    stuck: StuckView | None = None
    metadata: dict[str, str] = {}
    parent_execution_id: str | None = None
    successor: str | None = None


class ExecutionPage(View, frozen=True, kw_only=True):
    """The newest first. Pass `next_cursor` for the page after this one; null on the last."""

    items: tuple[ExecutionView, ...]
    next_cursor: str | None = None


class CountView(View, frozen=True, kw_only=True):
    """How many executions have each status."""

    counts: dict[WorkflowStatus, int]
    total: int


class StartView(View, frozen=True, kw_only=True):
    workflow_execution_id: str
    workflow_id: str
    workflow_created: bool
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class SignalView(View, frozen=True, kw_only=True):
    """`signal_event_sequence` is the number of the signal in the execution's history."""

    signal_event_sequence: int
    signal_delivered: bool = True


class SignalWithStartView(View, frozen=True, kw_only=True):
    workflow_execution_id: str
    workflow_created: bool
    signal_event_sequence: int
    signal_delivered: bool = True
    idempotency_key_used: bool = False
    idempotency_key_new: bool = False


class ChangedView(View, frozen=True, kw_only=True):
    """Whether the call has changed anything."""

    changed: bool
    successor: str | None = None


class HistoryView(View, frozen=True, kw_only=True):
    """Events in order. `more`: there may be others after the last."""

    events: tuple[EventView, ...]
    more: bool = False


class StateView(View, frozen=True, kw_only=True):
    """What the program shows in `ctx.state`."""

    state: dict[str, Raw]


class FailureView(View, frozen=True, kw_only=True, omit_defaults=True):
    """An exception in its durable form."""

    type: str
    message: str = ""
    traceback: str = ""
    code: str = ""
    non_retryable: bool = False
    cause: FailureView | None = None


class ResultView(View, frozen=True, kw_only=True):
    """How an execution ended. While it is open, `closed` is false and there is no event yet."""

    workflow_execution_id: str
    status: WorkflowStatus
    closed: bool
    result: Raw = msgspec.field(default_factory=null)
    failure: FailureView | None = None
    successor: str | None = None
    last_event: EventView | None = None


class QueryView(View, frozen=True, kw_only=True):
    result: Raw


class UpdateView(View, frozen=True, kw_only=True):
    """How far an update has got. REQUESTED and ACCEPTED are on the way; ask again for more."""

    workflow_execution_id: str
    update_id: str
    status: UpdateStatus
    result: Raw = msgspec.field(default_factory=null)
    failure: FailureView | None = None
    update_event_sequence: int | None = None


class TaskView(View, frozen=True, kw_only=True):
    """A task that is not finished. `output_sequence` is the number of the last thing it has said."""

    workflow_execution_id: str
    task_number: int
    task_kind: str
    queue: str
    priority_seconds: int
    input: Raw = msgspec.field(default_factory=null)
    retry: RetryPolicy
    timeouts: TaskTimeouts
    attempt: int
    running: bool
    scheduled_at: datetime
    not_before: datetime | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    due_at: datetime | None = None
    details: Raw = msgspec.field(default_factory=null)
    progress: float | None = None
    last_failure: FailureView | None = None
    deferred: bool = False
    output_sequence: int = 0


class TaskList(View, frozen=True, kw_only=True):
    tasks: tuple[TaskView, ...]


class TimerView(View, frozen=True, kw_only=True):
    """`promise` is out of time when it fires."""

    workflow_execution_id: str
    timer_number: int
    fire_at: datetime
    promise: str | None = None


class TimerList(View, frozen=True, kw_only=True):
    timers: tuple[TimerView, ...]


class UnreadSignalView(View, frozen=True, kw_only=True):
    """A signal nobody has read. `reason` says why it is a dead letter, if it is one."""

    sequence: int
    signal_name: str
    signal_value: Raw = msgspec.field(default_factory=null)
    received_at: datetime
    age_seconds: float
    sender: str | None = None
    reason: str | None = None


class MailboxView(View, frozen=True, kw_only=True):
    """The oldest unread signals, and how many there are of each name. Not `complete` if no worker could be asked."""

    workflow_execution_id: str
    signals: tuple[UnreadSignalView, ...]
    counts: dict[str, int]
    complete: bool


class DeadLetterView(View, frozen=True, kw_only=True):
    """A signal that was accepted but never read."""

    workflow_execution_id: str
    sequence: int
    signal_name: str
    signal_value: Raw = msgspec.field(default_factory=null)
    reason: str
    received_at: datetime
    buried_at: datetime


class DeadLetterList(View, frozen=True, kw_only=True):
    """The newest first; `now` is the server's time, to tell their age by."""

    dead_letters: tuple[DeadLetterView, ...]
    now: datetime


class RedeliveredView(View, frozen=True, kw_only=True):
    """Where the signal is now."""

    workflow_execution_id: str
    signal_event_sequence: int


class BuriedView(View, frozen=True, kw_only=True):
    """How many dead letters were made."""

    buried: int


# --- from the contract --------------------------------------------------------------------------------------------


def execution_view(record: Execution) -> ExecutionView:
    status = record.status
    return ExecutionView(
        workflow_execution_id=record.id,
        workflow_id=record.workflow_id,
        workflow_kind=record.kind,
        workflow_version=record.version,
        queue=record.queue,
        priority_seconds=record.priority,
        status=status,
        created_at=instant(record.created_at),
        updated_at=instant(record.updated_at),
        closed_at=instant_or_none(record.closed_at),
        start_at=_start_at(record),
        history_length=record.last_seq,
        seen_length=record.seen_seq,
        signal_count=record.signal_count,
        open_tasks=record.open_tasks,
        open_timers=record.open_timers,
        open_children=record.open_children,
        open_waits=record.open_waits,
        cancel_requested=record.cancel_requested,
        waiting_for=tuple(_wait_view(wait) for wait in record.waiting_for) if status is WorkflowStatus.WAITING else (),
        stuck=None if record.stuck is None else _stuck_view(record.stuck),
        metadata=record.metadata or {},
        parent_execution_id=record.parent_id,
        successor=record.successor,
    )


def _start_at(record: Execution) -> datetime | None:
    """Told from a delayed retry by its past: nothing has run yet, and nothing has gone wrong."""
    ready = record.ready
    if ready is None or ready.worker is not None or not ready.not_before_at:
        return None
    if record.seen_seq or record.crashes or record.state is not State.OPEN:
        return None
    return instant(ready.not_before_at)


def _wait_view(wait: Wait) -> WaitView:
    return WaitView(
        kind=wait.kind, name=wait.name, number=wait.number, line=wait.line, until=instant_or_none(wait.until_at)
    )


def _stuck_view(stuck: StuckReason) -> StuckView:
    return StuckView(
        code=stuck.code,
        message=stuck.message,
        at=instant(stuck.at),
        event_sequence=stuck.event_seq,
        recorded=stuck.recorded,
        attempted=stuck.attempted,
        recorded_line=stuck.recorded_line,
        attempted_line=stuck.attempted_line,
        worker=stuck.worker,
        build=stuck.build,
    )


def failure_view(failure: Failure | None) -> FailureView | None:
    if failure is None:
        return None
    return FailureView(
        type=failure.type,
        message=failure.message,
        traceback=failure.traceback,
        code=failure.code,
        non_retryable=failure.non_retryable,
        cause=failure_view(failure.cause),
    )


def result_view(execution_id: str, outcome: ex.Outcome) -> ResultView:
    body = outcome.last_event.body
    return ResultView(
        workflow_execution_id=execution_id,
        status=outcome.status,
        closed=True,
        result=getattr(body, "result", NULL),
        failure=failure_view(getattr(body, "failure", None)),
        successor=getattr(body, "new_execution_id", None) or getattr(body, "successor", None),
        last_event=event_view(outcome.last_event),
    )


def update_view(outcome: UpdateOutcome, sequence: int | None = None) -> UpdateView:
    return UpdateView(
        workflow_execution_id=outcome.workflow_execution_id,
        update_id=outcome.update_id,
        status=outcome.status,
        result=outcome.result,
        failure=failure_view(outcome.failure),
        update_event_sequence=sequence,
    )


def task_view(row: TaskRow) -> TaskView:
    return TaskView(
        workflow_execution_id=row.execution_id,
        task_number=row.task_no,
        task_kind=row.kind,
        queue=row.queue,
        priority_seconds=row.priority,
        input=row.input,
        retry=row.retry,
        timeouts=row.timeouts,
        attempt=row.attempt,
        running=row.worker is not None,
        scheduled_at=instant(row.scheduled_at),
        not_before=instant(row.not_before_at) if 0 < row.not_before_at < NEVER else None,
        started_at=instant_or_none(row.started_at),
        heartbeat_at=instant_or_none(row.heartbeat_at),
        due_at=instant_or_none(row.due_at),
        details=NULL if row.details is None else row.details,
        progress=row.progress,
        last_failure=failure_view(row.last_failure),
        deferred=row.deferred,
        output_sequence=row.output_seq,
    )


def timer_view(row: TimerRow) -> TimerView:
    return TimerView(
        workflow_execution_id=row.execution_id,
        timer_number=row.timer_no,
        fire_at=instant(row.fire_at),
        promise=row.promise,
    )


def mailbox_view(answer: ex.MailboxAnswer) -> MailboxView:
    return MailboxView(
        workflow_execution_id=answer.workflow_execution_id,
        signals=tuple(
            UnreadSignalView(
                sequence=signal.seq,
                signal_name=signal.signal_name,
                signal_value=signal.signal_value,
                received_at=instant(signal.received_at),
                age_seconds=signal.age / 1_000_000,
                sender=signal.sender,
                reason=signal.reason,
            )
            for signal in answer.signals
        ),
        counts=answer.counts,
        complete=answer.complete,
    )


def dead_letters_view(answer: ex.DeadLetters) -> DeadLetterList:
    return DeadLetterList(
        dead_letters=tuple(
            DeadLetterView(
                workflow_execution_id=letter.execution_id,
                sequence=letter.seq,
                signal_name=letter.signal_name,
                signal_value=letter.signal_value,
                reason=letter.reason,
                received_at=instant(letter.received_at),
                buried_at=instant(letter.at),
            )
            for letter in answer.letters
        ),
        now=instant(answer.now),
    )
