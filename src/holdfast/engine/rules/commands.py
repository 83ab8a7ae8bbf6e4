"""From a command of a turn to its event and its rows.

The rows of a commit are numbered without gaps: whatever else a command brings about in the history of the execution
itself (an answer, a signal to itself) is put off until they are written, by `uow.deferred`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import asdict

from holdfast.engine.rules import children, messages, promises, tasks
from holdfast.engine.rules.closing import close, close_externally
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.signals import check_signal, receive_signal
from holdfast.engine.rules.starts import NewExecution, choose_version, new_execution_id, open_execution, start_execution
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import ExecutionNotFound, HoldfastError, InvalidRequest, WorkflowAlreadyRunning
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.executions import DEADLINE_NO, Execution, State, TimerRow
from holdfast.model.messages import SubscriptionKind
from holdfast.model.values import MICRO, DeliveryMode, Failure, IfRunning, ParentClose


def _append_as(event: type[Any]) -> Callable[[UnitOfWork, Execution, Any, int], None]:
    """For commands that leave nothing but their event."""

    def append(uow: UnitOfWork, execution: Execution, command: Any, up_to: int) -> None:
        uow.append(execution, event(up_to=up_to, **asdict(command)))

    return append


# --- tasks and timers ---------------------------------------------------------------------------------------------


def _schedule_task(uow: UnitOfWork, execution: Execution, command: c.ScheduleTask, up_to: int) -> None:
    event = e.TaskScheduled(
        up_to=up_to,
        task_no=command.task_no,
        kind=command.kind,
        input=command.input,
        queue=command.queue,
        priority=command.priority,
        retry=command.retry,
        timeouts=command.timeouts,
        line=command.line,
    )
    uow.append(execution, event)
    tasks.schedule(uow, execution, event)


def _cancel_task(uow: UnitOfWork, execution: Execution, command: c.CancelTask, up_to: int) -> None:
    uow.append(execution, e.TaskCancelRequested(up_to=up_to, task_no=command.task_no, line=command.line))
    task = uow.loaded.tasks.get((execution.id, command.task_no))
    if task is not None:
        tasks.cancel(uow, execution, task)


def _start_timer(uow: UnitOfWork, execution: Execution, command: c.StartTimer, up_to: int) -> None:
    uow.append(
        execution,
        e.TimerStarted(up_to=up_to, timer_no=command.timer_no, fire_at=command.fire_at, line=command.line),
    )
    uow.add_timer(
        execution,
        TimerRow(execution_id=execution.id, timer_no=command.timer_no, org=execution.org, fire_at=command.fire_at),
    )


def _cancel_timer(uow: UnitOfWork, execution: Execution, command: c.CancelTimer, up_to: int) -> None:
    uow.append(execution, e.TimerCancelled(up_to=up_to, timer_no=command.timer_no, line=command.line))
    uow.drop_timer(execution, command.timer_no)


# --- other workflows ----------------------------------------------------------------------------------------------


def _start_child(uow: UnitOfWork, execution: Execution, command: c.StartChild, up_to: int) -> None:
    uow.append(execution, e.ChildStarted(up_to=up_to, **asdict(command)))
    try:
        version = _check_child(uow, execution, command)
    except HoldfastError as refusal:
        answer = children.not_started(command.child_no, command.child_execution_id, _failure(refusal))
        uow.deferred.append(partial(_deliver_outcome, uow, execution, answer))
        return
    running = open_execution(uow, execution.org, command.workflow_id) if command.workflow_id is not None else None
    if running is not None and command.if_running == IfRunning.USE_EXISTING:
        _adopt(uow, execution, running, command)
        return
    if running is not None:
        reason = f"another execution with its workflow id was started by {execution.id}"
        close_externally(uow, running, State.TERMINATED, e.WorkflowTerminated(reason=reason))
    child = start_execution(
        uow,
        NewExecution(
            org=execution.org,
            kind=command.kind,
            version=version,
            execution_id=command.child_execution_id,
            workflow_id=command.workflow_id if command.workflow_id is not None else command.child_execution_id,
            key=command.workflow_id is not None,
            input=command.input,
            queue=command.queue,
            priority=command.priority,
            metadata=command.metadata,
            parent_id=execution.id,
            child_no=command.child_no,
            on_parent_close=command.on_parent_close,
            depth=command.depth,
            expires_at=(
                None if command.execution_timeout_s is None else uow.now + int(command.execution_timeout_s * MICRO)
            ),
        ),
    )
    children.bind(uow, execution, child)


def _check_child(uow: UnitOfWork, execution: Execution, command: c.StartChild) -> str:
    """The version it runs with, or the reason why it can't begin."""
    limit = uow.config.limits.child_depth
    if command.depth > limit:
        raise InvalidRequest(f"children may be nested {limit} deep, not {command.depth}", field="depth")
    if command.child_execution_id in uow.loaded.executions:
        raise InvalidRequest(f"execution id {command.child_execution_id} is in use", field="child_execution_id")
    version = choose_version(uow, execution.org, command.kind, command.version)
    running = open_execution(uow, execution.org, command.workflow_id) if command.workflow_id is not None else None
    if running is not None:
        if running is execution or command.if_running == IfRunning.FAIL:
            raise WorkflowAlreadyRunning(
                f"workflow id {command.workflow_id!r} is in use by the open execution {running.id}",
                execution_id=running.id,
            )
        if command.if_running == IfRunning.USE_EXISTING and running.parent_id is not None:
            raise WorkflowAlreadyRunning(
                f"execution {running.id} with workflow id {command.workflow_id!r} is already the child of "
                f"{running.parent_id}",
                execution_id=running.id,
            )
    return version


def _adopt(uow: UnitOfWork, execution: Execution, running: Execution, command: c.StartChild) -> None:
    """The parent hears of its end, no more: it lives its own life."""
    running.parent_id = execution.id
    running.child_no = command.child_no
    running.on_parent_close = ParentClose.ABANDON
    uow.mark_state_changed(running)
    children.bind(uow, execution, running)


def _cancel_child(uow: UnitOfWork, execution: Execution, command: c.CancelChild, up_to: int) -> None:
    """It may take its time to clean up: from now on its parent's end does not touch it."""
    uow.append(execution, e.ChildCancelRequested(up_to=up_to, child_no=command.child_no, line=command.line))
    child_id = uow.loaded.children.get((execution.id, command.child_no))
    child = uow.loaded.executions.get(child_id) if child_id is not None else None
    if child is not None and child.is_open:
        children.release(uow, execution, child)
        children.request_cancel(uow, child, f"cancelled by its parent {execution.workflow_id}")


def _signal_external(uow: UnitOfWork, execution: Execution, command: c.SignalExternal, up_to: int) -> None:
    uow.append(execution, e.ExternalSignalInitiated(up_to=up_to, **asdict(command)))
    uow.deferred.append(partial(_deliver_signal, uow, execution, command))


def _deliver_signal(uow: UnitOfWork, execution: Execution, command: c.SignalExternal) -> None:
    answer: e.EventBody
    try:
        target = _target(uow, execution, command)
        check_signal(uow, target)
    except HoldfastError as refusal:
        answer = e.ExternalSignalFailed(signal_no=command.signal_no, failure=_failure(refusal))
    else:
        signal = e.SignalReceived(
            signal_name=command.signal_name, signal_value=command.signal_value, sender=execution.id
        )
        answer = e.ExternalSignalDelivered(
            signal_no=command.signal_no,
            target_execution_id=target.id,
            signal_event_sequence=receive_signal(uow, target, signal),
        )
    _deliver_outcome(uow, execution, answer)


def _target(uow: UnitOfWork, execution: Execution, command: c.SignalExternal) -> Execution:
    if command.child_no:
        child_id = uow.loaded.children.get((execution.id, command.child_no))
        if child_id is None:
            raise ExecutionNotFound(f"child {command.child_no} is not open", execution_id=command.target)
        return uow.loaded.executions[child_id]
    target = open_execution(uow, execution.org, command.target)
    if target is not None:
        return target
    return uow.execution(execution.org, command.target)


def _create_promise(uow: UnitOfWork, execution: Execution, command: c.CreatePromise, up_to: int) -> None:
    event = e.PromiseCreated(up_to=up_to, **asdict(command))
    uow.append(execution, event)
    promises.create(uow, execution, event)
    messages.subscribe_promise(uow, execution, event)


def _cancel_promise(uow: UnitOfWork, execution: Execution, command: c.CancelPromise, up_to: int) -> None:
    uow.append(execution, e.PromiseCancelled(up_to=up_to, **asdict(command)))
    promises.cancel(uow, execution, command.name)


def _start_wait(uow: UnitOfWork, execution: Execution, command: c.StartWait, up_to: int) -> None:
    event = e.WaitStarted(up_to=up_to, **asdict(command))
    uow.append(execution, event)
    messages.subscribe(uow, execution, event)


def _cancel_wait(uow: UnitOfWork, execution: Execution, command: c.CancelWait, up_to: int) -> None:
    uow.append(execution, e.WaitCancelled(up_to=up_to, wait_no=command.wait_no, line=command.line))
    uow.drop_wait(execution, command.wait_no)


def send(
    uow: UnitOfWork, execution: Execution, command: c.Publish | c.ThrowBroadcast, up_to: int, candidates: list[int]
) -> None:
    """Commands that need to know who may be waiting."""
    if isinstance(command, c.Publish):
        _publish(uow, execution, command, up_to, candidates)
    else:
        _throw(uow, execution, command, up_to, candidates)


def _publish(uow: UnitOfWork, execution: Execution, command: c.Publish, up_to: int, candidates: list[int]) -> None:
    """The event gets its number now; it reaches those who wait when the turn's own rows are written."""
    event_id = messages.next_id(uow)
    fields = asdict(command)
    uow.append(execution, e.EventPublished(up_to=up_to, event_id=event_id, **fields))
    publication = messages.Publication(
        org=execution.org,
        kind=SubscriptionKind.EVENT if command.correlation is None else SubscriptionKind.MESSAGE,
        key=command.key,
        data=command.data,
        correlation=command.correlation,
        expire_after_s=command.expire_after_s,
        delivery=DeliveryMode(command.delivery),
        consume=command.consume,
    )
    uow.deferred.append(lambda: _drop(messages.send(uow, publication, candidates, number=event_id)))


def _throw(uow: UnitOfWork, execution: Execution, command: c.ThrowBroadcast, up_to: int, candidates: list[int]) -> None:
    """What the same turn waits for is there before the throw takes effect."""
    number = messages.next_id(uow)
    uow.append(execution, e.BroadcastThrown(up_to=up_to, name=command.name, broadcast_id=number, line=command.line))
    publication = messages.Publication(org=execution.org, kind=SubscriptionKind.BROADCAST, key=command.name)
    uow.deferred.append(lambda: _drop(messages.send(uow, publication, candidates, number=number)))


def _drop(_: object) -> None:
    """Nobody waits for this answer."""


def _deliver_outcome(uow: UnitOfWork, execution: Execution, answer: e.EventBody) -> None:
    uow.append(execution, answer)
    wake(uow, execution)


def _failure(refusal: HoldfastError) -> Failure:
    return Failure(type=type(refusal).__name__, message=str(refusal), code=refusal.code, non_retryable=True)


# --- what others see ----------------------------------------------------------------------------------------------


def _change_metadata(uow: UnitOfWork, execution: Execution, command: c.ChangeMetadata, up_to: int) -> None:
    uow.append(execution, e.MetadataChanged(up_to=up_to, values=command.values, removed=command.removed))
    kept = {key: value for key, value in (execution.metadata or {}).items() if key not in command.removed}
    execution.metadata = kept | command.values
    uow.mark_state_changed(execution)
    uow.changes.metadata[execution.id] = execution


# --- the end ------------------------------------------------------------------------------------------------------


def _complete_workflow(uow: UnitOfWork, execution: Execution, command: c.CompleteWorkflow, up_to: int) -> None:
    close(uow, execution, State.COMPLETED, e.WorkflowCompleted(up_to=up_to, result=command.result))


def _fail_workflow(uow: UnitOfWork, execution: Execution, command: c.FailWorkflow, up_to: int) -> None:
    close(uow, execution, State.FAILED, e.WorkflowFailed(up_to=up_to, failure=command.failure))


def _cancel_workflow(uow: UnitOfWork, execution: Execution, command: c.CancelWorkflow, up_to: int) -> None:
    close(uow, execution, State.CANCELLED, e.WorkflowCancelled(up_to=up_to, reason=command.reason))


def _continue_workflow(uow: UnitOfWork, execution: Execution, command: c.ContinueWorkflow, up_to: int) -> None:
    """End this run and begin the next, which takes over what hangs on the workflow id: signals, parent, deadline."""
    kind = command.kind
    try:
        version = choose_version(uow, execution.org, kind, command.version)
    except HoldfastError as refusal:
        close(uow, execution, State.FAILED, e.WorkflowFailed(up_to=up_to, failure=_failure(refusal)))
        return
    new_id = new_execution_id(uow)
    deadline = uow.loaded.timers.get((execution.id, DEADLINE_NO))
    carried = uow.loaded.unread.get(execution.id, ())
    body = e.WorkflowContinued(up_to=up_to, new_execution_id=new_id, kind=kind, version=version, input=command.input)
    close(uow, execution, State.CONTINUED, body, successor=new_id)
    successor = start_execution(
        uow,
        NewExecution(
            org=execution.org,
            kind=kind,
            version=version,
            execution_id=new_id,
            # Found by the first run's id, if it had no key of the caller's.
            workflow_id=execution.workflow_id,
            key=True,
            input=command.input,
            queue=command.queue or execution.queue,
            priority=execution.priority,
            metadata=execution.metadata,
            parent_id=execution.parent_id,
            child_no=execution.child_no,
            on_parent_close=execution.on_parent_close,
            depth=command.depth,
            continued_from=execution.id,
            expires_at=deadline.fire_at if deadline is not None else None,
            born=command.born,
            had=command.had,
        ),
    )
    if successor.parent_id is not None:
        uow.loaded.children[successor.parent_id, successor.child_no] = new_id
    for event in carried:
        carry(uow, successor, event)


def carry(uow: UnitOfWork, successor: Execution, event: e.HistoryEvent) -> None:
    """Hand a signal or update that was never read over to the next run."""
    body = event.body
    if isinstance(body, e.SignalReceived):
        signal = e.SignalReceived(
            signal_name=body.signal_name,
            signal_value=body.signal_value,
            request_id=body.request_id,
            sender=body.sender,
            carried_from=event.seq,
        )
        receive_signal(uow, successor, signal)
    elif isinstance(body, e.UpdateRequested):
        update = e.UpdateRequested(
            update_id=body.update_id, update_name=body.update_name, input=body.input, carried_from=event.seq
        )
        successor.call_seq = uow.append(successor, update).seq
        wake(uow, successor)


APPLY: dict[type[Any], Callable[[UnitOfWork, Execution, Any, int], None]] = {
    c.ScheduleTask: _schedule_task,
    c.CancelTask: _cancel_task,
    c.StartTimer: _start_timer,
    c.CancelTimer: _cancel_timer,
    c.StartChild: _start_child,
    c.CancelChild: _cancel_child,
    c.SignalExternal: _signal_external,
    c.CreatePromise: _create_promise,
    c.CancelPromise: _cancel_promise,
    c.StartWait: _start_wait,
    c.CancelWait: _cancel_wait,
    c.AcceptUpdate: _append_as(e.UpdateAccepted),
    c.RejectUpdate: _append_as(e.UpdateRejected),
    c.CompleteUpdate: _append_as(e.UpdateCompleted),
    c.FailUpdate: _append_as(e.UpdateFailed),
    c.MarkPatch: _append_as(e.PatchMarked),
    c.ChangeState: _append_as(e.StateChanged),
    c.ChangeMetadata: _change_metadata,
    c.CompleteWorkflow: _complete_workflow,
    c.FailWorkflow: _fail_workflow,
    c.CancelWorkflow: _cancel_workflow,
    c.ContinueWorkflow: _continue_workflow,
}
"""What becomes of a command, by its type: called with the execution and the last event that its turn had seen."""
