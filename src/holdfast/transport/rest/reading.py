"""From the public JSON back to the contract's records, for the client. What was left out stays empty."""

from __future__ import annotations

from holdfast.contract import executions as ex
from holdfast.contract.calls import UpdateOutcome
from holdfast.model.executions import (
    NEVER,
    DeadLetter,
    Execution,
    Ready,
    State,
    StuckReason,
    TaskRow,
    TimerRow,
    WorkflowStatus,
)
from holdfast.model.values import Failure, Wait
from holdfast.transport.rest.events import read_event
from holdfast.transport.rest.times import micros, micros_or_none
from holdfast.transport.rest.views import (
    DeadLetterList,
    ExecutionView,
    FailureView,
    MailboxView,
    ResultView,
    StuckView,
    TaskView,
    TimerView,
    UpdateView,
)

UNTOLD = "elsewhere"
"""Stands for the session that holds an execution or a task: callers see that there is one."""


def read_execution(view: ExecutionView, org: str) -> Execution:
    return Execution(
        id=view.workflow_execution_id,
        org=org,
        workflow_id=view.workflow_id,
        kind=view.workflow_kind,
        version=view.workflow_version,
        queue=view.queue,
        priority=view.priority_seconds,
        state=State.OPEN
        if view.status.is_open and view.status is not WorkflowStatus.STUCK
        else State(view.status.value),
        created_at=micros(view.created_at),
        updated_at=micros(view.updated_at),
        closed_at=micros_or_none(view.closed_at),
        last_seq=view.history_length,
        seen_seq=view.seen_length,
        signal_count=view.signal_count,
        open_tasks=view.open_tasks,
        open_timers=view.open_timers,
        open_children=view.open_children,
        open_waits=view.open_waits,
        cancel_requested=view.cancel_requested,
        waiting_for=tuple(
            Wait(wait.kind, wait.name, wait.number, wait.line, micros_or_none(wait.until)) for wait in view.waiting_for
        ),
        stuck=None if view.stuck is None else _read_stuck(view.stuck),
        metadata=view.metadata or None,
        parent_id=view.parent_execution_id,
        successor=view.successor,
        ready=_read_ready(view),
    )


def _read_ready(view: ExecutionView) -> Ready | None:
    if view.status not in {WorkflowStatus.PENDING, WorkflowStatus.RUNNING}:
        return None
    return Ready(
        since_at=micros(view.updated_at),
        not_before_at=micros_or_none(view.start_at) or 0,
        worker=UNTOLD if view.status is WorkflowStatus.RUNNING else None,
    )


def _read_stuck(stuck: StuckView) -> StuckReason:
    return StuckReason(
        code=stuck.code,
        message=stuck.message,
        at=micros(stuck.at),
        event_seq=stuck.event_sequence,
        recorded=stuck.recorded,
        attempted=stuck.attempted,
        recorded_line=stuck.recorded_line,
        attempted_line=stuck.attempted_line,
        worker=stuck.worker,
        build=stuck.build,
    )


def read_failure(view: FailureView | None) -> Failure | None:
    if view is None:
        return None
    return Failure(
        type=view.type,
        message=view.message,
        traceback=view.traceback,
        code=view.code,
        non_retryable=view.non_retryable,
        cause=read_failure(view.cause),
    )


def read_outcome(view: ResultView) -> ex.Outcome | None:
    """None while the execution is open."""
    if view.last_event is None:
        return None
    return ex.Outcome(view.status, read_event(view.last_event))


def read_update(view: UpdateView) -> UpdateOutcome:
    return UpdateOutcome(
        workflow_execution_id=view.workflow_execution_id,
        update_id=view.update_id,
        status=view.status,
        result=view.result,
        failure=read_failure(view.failure),
    )


def read_task(view: TaskView, org: str) -> TaskRow:
    return TaskRow(
        execution_id=view.workflow_execution_id,
        task_no=view.task_number,
        org=org,
        kind=view.task_kind,
        queue=view.queue,
        priority=view.priority_seconds,
        input=view.input,
        retry=view.retry,
        timeouts=view.timeouts,
        scheduled_at=micros(view.scheduled_at),
        not_before_at=NEVER if view.deferred and not view.running else micros_or_none(view.not_before) or 0,
        attempt=view.attempt,
        worker=UNTOLD if view.running else None,
        started_at=micros_or_none(view.started_at),
        heartbeat_at=micros_or_none(view.heartbeat_at),
        due_at=micros_or_none(view.due_at),
        details=None if bytes(view.details) == b"null" else view.details,
        progress=view.progress,
        last_failure=read_failure(view.last_failure),
        deferred=view.deferred,
        output_seq=view.output_sequence,
    )


def read_timer(view: TimerView, org: str) -> TimerRow:
    return TimerRow(
        execution_id=view.workflow_execution_id,
        timer_no=view.timer_number,
        org=org,
        fire_at=micros(view.fire_at),
        promise=view.promise,
    )


def read_mailbox(view: MailboxView) -> ex.MailboxAnswer:
    return ex.MailboxAnswer(
        workflow_execution_id=view.workflow_execution_id,
        signals=tuple(
            ex.UnreadSignal(
                seq=signal.sequence,
                signal_name=signal.signal_name,
                signal_value=signal.signal_value,
                received_at=micros(signal.received_at),
                age=round(signal.age_seconds * 1_000_000),
                sender=signal.sender,
                reason=signal.reason,
            )
            for signal in view.signals
        ),
        counts=view.counts,
        complete=view.complete,
    )


def read_dead_letters(view: DeadLetterList, org: str) -> ex.DeadLetters:
    return ex.DeadLetters(
        letters=tuple(
            DeadLetter(
                execution_id=letter.workflow_execution_id,
                seq=letter.sequence,
                org=org,
                reason=letter.reason,
                at=micros(letter.buried_at),
                signal_name=letter.signal_name,
                signal_value=letter.signal_value,
                received_at=micros(letter.received_at),
            )
            for letter in view.dead_letters
        ),
        now=micros(view.now),
    )
