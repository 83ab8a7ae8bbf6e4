"""One history and the rows that go with it: what an open execution waits for, what a closed one has left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.model import events as e
from holdfast.model.executions import DEADLINE_NO, State, TaskRow, TimerRow
from holdfast.model.messages import PromiseState, SubscriptionKind
from verification.invariants.records import Record, Violation

_NEWS: Final = (
    e.WorkflowStarted,
    e.SignalReceived,
    e.TimerFired,
    e.TaskCompleted,
    e.TaskFailed,
    e.StepCompleted,
    e.StepFailed,
    e.ChildCompleted,
    e.ChildFailed,
    e.ExternalSignalDelivered,
    e.ExternalSignalFailed,
    e.PromiseResolved,
    e.PromiseRejected,
    e.PromiseTimedOut,
    e.EventReceived,
    e.BroadcastReceived,
    e.UpdateRequested,
    e.CancelRequested,
    e.WorkflowReset,
)


def check_rows(record: Record) -> Iterator[Violation]:
    if record.tasks is None or record.timers is None:
        return
    if record.execution_row.is_open:
        yield from _deadline(record, record.timers)
        yield from _rest(record, record.tasks, record.timers)
    else:
        yield from _remaining_rows(record)


def _deadline(record: Record, timers: Sequence[TimerRow]) -> Iterator[Violation]:
    """An execution with a time limit has the timer that ends it, for as long as it is open."""
    started = record.history[0].body if record.history else None
    if isinstance(started, e.WorkflowStarted):
        limited, ticking = started.expires_at is not None, any(row.timer_no == DEADLINE_NO for row in timers)
        if limited and not ticking:
            yield Violation("I16", record.execution_row.id, 0, "has a time limit, but no timer that ends it")
        if ticking and not limited:
            yield Violation("I16", record.execution_row.id, 0, "has no time limit, but a timer that ends it")


def _rest(record: Record, tasks: Sequence[TaskRow], timers: Sequence[TimerRow]) -> Iterator[Violation]:
    """An open execution that nobody runs and nobody is asked to run must have a reason to be still."""
    execution_row = record.execution_row
    if execution_row.state is State.STUCK and execution_row.stuck is None:
        yield Violation("I16", execution_row.id, 0, "stuck without a reason")
    if execution_row.ready is not None:
        return
    seen = max((event.body.up_to for event in record.history if isinstance(event.body, e.TurnEvent)), default=0)
    for event in record.history:
        if event.seq > seen and isinstance(event.body, _NEWS):
            yield Violation(
                "I16", execution_row.id, event.seq, f"{event.type} has been seen by no turn, and no turn is due"
            )
            break
    if not execution_row.waiting_for:
        yield Violation("I16", execution_row.id, 0, "at rest, but waits for nothing")
    there = {("task", row.task_no) for row in tasks} | {("timer", row.timer_no) for row in timers}
    there |= {(str(row.kind), row.wait_no) for row in record.waits or ()}
    there |= {("promise", row.promise_no) for row in record.promises or () if row.state is PromiseState.PENDING}
    checked = {"task", "timer"}
    if record.waits is not None:
        checked |= {str(kind) for kind in SubscriptionKind}
    if record.promises is not None:
        checked.add("promise")
    for wait in execution_row.waiting_for:
        if wait.kind == "step":
            yield Violation("I16", execution_row.id, 0, f"waits for step {wait.number}, which nobody runs")
        if wait.kind == "external_signal":
            yield Violation(
                "I16", execution_row.id, 0, f"waits for signal {wait.number} to others, which nobody delivers"
            )
        if wait.kind in checked and (wait.kind, wait.number) not in there:
            yield Violation("I16", execution_row.id, 0, f"waits for {wait.kind} {wait.number}, which has no row")


def _remaining_rows(record: Record) -> Iterator[Violation]:
    execution_row = record.execution_row
    if execution_row.ready is not None:
        yield Violation("I19", execution_row.id, 0, "closed, but has a ready row")
    for task in record.tasks or ():
        yield Violation("I19", execution_row.id, 0, f"closed, but task {task.task_no} is still there")
    for timer in record.timers or ():
        yield Violation("I19", execution_row.id, 0, f"closed, but timer {timer.timer_no} is still there")
    for wait in record.waits or ():
        yield Violation("I19", execution_row.id, 0, f"closed, but its subscription to {wait.key!r} is still there")
