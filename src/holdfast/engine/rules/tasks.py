"""The life of a task: scheduled, started, retried, finished."""

from __future__ import annotations

from holdfast.contract.workers import TaskStop, TaskWork
from holdfast.engine.rules.leases import NONCE_MASK, wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import TaskCompleted, TaskFailed, TaskScheduled
from holdfast.model.executions import NEVER, Execution, TaskRow
from holdfast.model.messages import TokenRow
from holdfast.model.values import MICRO, Failure, Payload, Token


def schedule(uow: UnitOfWork, execution: Execution, event: TaskScheduled) -> None:
    task = TaskRow(
        execution_id=execution.id,
        task_no=event.task_no,
        org=execution.org,
        kind=event.kind,
        queue=event.queue,
        priority=event.priority,
        input=event.input,
        retry=event.retry,
        timeouts=event.timeouts,
        scheduled_at=uow.now,
    )
    task.due_at = _overall_deadline(task)
    execution.open_tasks += 1
    uow.add_task(task)
    uow.note_due(task.due_at)
    offer(uow, task)


def offer(uow: UnitOfWork, task: TaskRow) -> None:
    """Start it at once if a session of this process can take it."""
    session = uow.place.for_task(task)
    if session is not None:
        start_attempt(uow, task, session)


def start_attempt(uow: UnitOfWork, task: TaskRow, session: str) -> None:
    task.attempt += 1
    task.nonce = uow.entropy() & NONCE_MASK
    task.worker = session
    task.started_at = uow.now
    task.heartbeat_at = None
    task.not_before_at = 0
    task.deferred = False
    task.due_at = _attempt_deadline(task, uow.now)
    uow.touch_task(task)
    uow.note_due(task.due_at)
    uow.work.append(
        (
            session,
            TaskWork(
                execution_id=task.execution_id,
                task_no=task.task_no,
                kind=task.kind,
                token=Token(task.attempt, task.nonce),
                input=task.input,
                timeouts=task.timeouts,
                scheduled_at=task.scheduled_at,
                started_at=uow.now,
                details=task.details,
                output_seq=task.output_seq,
            ),
        )
    )


def _overall_deadline(task: TaskRow) -> int | None:
    limit_s = task.timeouts.schedule_to_close_s
    return None if limit_s is None else task.scheduled_at + int(limit_s * MICRO)


def _attempt_deadline(task: TaskRow, beat_at: int | None) -> int:
    """The nearest of: end of this attempt, end of all attempts, silence of the body (if it runs) since `beat_at`."""
    assert task.started_at is not None, "only a started attempt has a deadline"
    due_at = task.started_at + int(task.timeouts.start_to_close_s * MICRO)
    overall = _overall_deadline(task)
    if overall is not None:
        due_at = min(due_at, overall)
    if task.timeouts.heartbeat_s is not None and beat_at is not None:
        due_at = min(due_at, beat_at + int(task.timeouts.heartbeat_s * MICRO))
    return due_at


def beat(uow: UnitOfWork, task: TaskRow) -> None:
    task.heartbeat_at = uow.now
    task.due_at = _attempt_deadline(task, uow.now)
    uow.touch_task(task)
    uow.note_due(task.due_at)


def complete(uow: UnitOfWork, execution: Execution, task: TaskRow, result: Payload) -> None:
    _forget(uow, execution, task)
    uow.append(
        execution,
        TaskCompleted(task_no=task.task_no, result=result, attempt=task.attempt, worker=task.worker or ""),
    )
    wake(uow, execution)


def fail_attempt(
    uow: UnitOfWork, execution: Execution, task: TaskRow, failure: Failure, *, timeout: str = "", now: bool = False
) -> None:
    """The running attempt is over without a result: another one later (or `now`), or the end."""
    if timeout != "schedule_to_close" and task.retry.allows(failure, task.attempt):
        delay_s = 0.0 if now else task.retry.delay_s(task.attempt, f"{task.execution_id}/{task.task_no}")
        not_before_at = uow.now + int(delay_s * MICRO)
        overall = _overall_deadline(task)
        if overall is None or not_before_at < overall:
            task.last_failure = failure
            rest(uow, task, not_before_at if delay_s else 0)
            return
    _forget(uow, execution, task)
    uow.append(
        execution,
        TaskFailed(
            task_no=task.task_no, failure=failure, attempt=task.attempt, timeout=timeout, worker=task.worker or ""
        ),
    )
    wake(uow, execution)


def issue_token(uow: UnitOfWork, task: TaskRow, token_hash: str) -> None:
    """From now on whoever has the token can complete the running attempt."""
    if task.deferred:
        return
    token = TokenRow(
        token_hash=token_hash,
        org=task.org,
        execution_id=task.execution_id,
        task_no=task.task_no,
        attempt=task.attempt,
    )
    uow.add_token(token)
    task.deferred = True
    uow.touch_task(task)


def defer(uow: UnitOfWork, task: TaskRow) -> None:
    """Its body has returned: no worker has it, none may claim it, and nobody is there to send heartbeats. The other
    deadlines hold: an attempt that nobody completes times out and is tried again."""
    task.worker = None
    task.not_before_at = NEVER
    task.due_at = _attempt_deadline(task, None)
    uow.touch_task(task)
    uow.note_due(task.due_at)


def hand_back(uow: UnitOfWork, task: TaskRow) -> None:
    """An attempt that was interrupted is not counted; one that has given its token away is: the next one's differs."""
    if not task.deferred:
        task.attempt -= 1
    rest(uow, task, 0)


def reject_attempt(uow: UnitOfWork, execution: Execution, task: TaskRow, failure: Failure) -> None:
    """Whoever was to complete it says that it failed: a body that still runs no longer counts."""
    if task.worker is not None:
        uow.work.append((task.worker, TaskStop(task.execution_id, task.task_no, task.attempt, "failed")))
    fail_attempt(uow, execution, task, failure)


def rest(uow: UnitOfWork, task: TaskRow, not_before_at: int) -> None:
    """Back on the queue."""
    task.worker = None
    task.deferred = False
    task.started_at = None
    task.not_before_at = not_before_at
    task.due_at = _overall_deadline(task)
    uow.touch_task(task)
    uow.note_due(not_before_at or task.due_at)
    if not not_before_at:
        offer(uow, task)


def cancel(uow: UnitOfWork, execution: Execution, task: TaskRow) -> None:
    """The program no longer wants it: the row goes, a running body is told, a later report is stale."""
    if task.worker is not None:
        uow.work.append((task.worker, TaskStop(task.execution_id, task.task_no, task.attempt, "cancelled")))
    _forget(uow, execution, task)


def time_out(uow: UnitOfWork, execution: Execution, task: TaskRow) -> None:
    """`due_at` has passed: say which limit it was, stop the body, try again if the policy allows."""
    overall = _overall_deadline(task)
    if overall is not None and overall <= uow.now:
        name, limit_s = "schedule_to_close", task.timeouts.schedule_to_close_s
    elif task.started_at is not None and task.started_at + int(task.timeouts.start_to_close_s * MICRO) <= uow.now:
        name, limit_s = "start_to_close", task.timeouts.start_to_close_s
    else:
        name, limit_s = "heartbeat", task.timeouts.heartbeat_s
    if task.worker is not None:
        uow.work.append((task.worker, TaskStop(task.execution_id, task.task_no, task.attempt, "timed_out")))
    failure = Failure(type="TimeoutError", message=f"{name} of {limit_s} s passed", code=f"{name}_timeout")
    fail_attempt(uow, execution, task, failure, timeout=name)


def _forget(uow: UnitOfWork, execution: Execution, task: TaskRow) -> None:
    execution.open_tasks -= 1
    uow.touch(execution)
    uow.drop_task(task)
