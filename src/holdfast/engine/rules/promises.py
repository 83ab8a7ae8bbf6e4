"""Promises: made by a turn, settled once and for ever, by whoever comes first."""

from __future__ import annotations

from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import ExecutionClosed
from holdfast.model import events as e
from holdfast.model.executions import Execution, State, TimerRow
from holdfast.model.messages import PromiseRow, PromiseState, TokenRow
from holdfast.model.shapes import check_value
from holdfast.model.values import NULL, Failure, Payload, Settlement


def create(uow: UnitOfWork, execution: Execution, event: e.PromiseCreated) -> None:
    """The row, its token and its time-out. One that was settled in advance is told of it afterwards, whether it fits or
    not: whoever settled it was told that it counts. Given up by the same turn, it stays settled, and nobody is told."""
    key = (execution.id, event.name)
    early = uow.loaded.promises.get(key)
    _add_token(uow, execution, event)
    if early is not None and not early.promise_no and not is_forgotten(uow, early):
        early.promise_no = event.promise_no
        early.expires_at = None
        early.shape = event.shape
        uow.changes.promises[key] = early
        uow.deferred.append(lambda: None if _given_up(uow, early) else _deliver_outcome(uow, execution, early))
        return
    promise = _row(execution, event, uow.now)
    uow.loaded.promises[key] = uow.changes.promises[key] = promise
    _start_timer(uow, execution, event)


def recreate(uow: UnitOfWork, execution: Execution, event: e.PromiseCreated, outcome: e.EventBody | None) -> None:
    """As in the past that an execution has taken over: pending, or settled as it was there."""
    promise = _row(execution, event, uow.now)
    uow.loaded.promises[execution.id, event.name] = uow.changes.promises[execution.id, event.name] = promise
    _add_token(uow, execution, event)
    if outcome is None:
        _start_timer(uow, execution, event)
        return
    promise.settled_at = uow.now
    promise.timer_no = promise.event_key = None
    match outcome:
        case e.PromiseResolved():
            promise.state = PromiseState.RESOLVED
            promise.value, promise.settled_by = outcome.value, outcome.settled_by
        case e.PromiseRejected():
            promise.state = PromiseState.REJECTED
            promise.failure, promise.settled_by = outcome.failure, outcome.settled_by
        case e.PromiseTimedOut():
            promise.state = PromiseState.TIMED_OUT
        case _:
            promise.state = PromiseState.CANCELLED


def restore(uow: UnitOfWork, execution: Execution, event: e.PromiseCreated) -> PromiseRow:
    """Its row was lost: pending, as the history says. Its timer is another row."""
    promise = _row(execution, event, uow.now)
    uow.loaded.promises[execution.id, event.name] = uow.changes.promises[execution.id, event.name] = promise
    _add_token(uow, execution, event)
    return promise


def is_forgotten(uow: UnitOfWork, promise: PromiseRow) -> bool:
    """Whether it was settled early, for a workflow that has not made it in time."""
    return promise.expires_at is not None and promise.expires_at <= uow.now


def _row(execution: Execution, event: e.PromiseCreated, now: int) -> PromiseRow:
    return PromiseRow(
        execution_id=execution.id,
        name=event.name,
        org=execution.org,
        promise_no=event.promise_no,
        state=PromiseState.PENDING,
        created_at=now,
        event_key=event.event_key,
        timer_no=event.timer_no,
        shape=event.shape,
    )


def _add_token(uow: UnitOfWork, execution: Execution, event: e.PromiseCreated) -> None:
    uow.add_token(
        TokenRow(token_hash=event.token_hash, org=execution.org, execution_id=execution.id, promise=event.name)
    )


def _start_timer(uow: UnitOfWork, execution: Execution, event: e.PromiseCreated) -> None:
    if event.timer_no is not None and event.expires_at is not None:
        row = TimerRow(
            execution_id=execution.id,
            timer_no=event.timer_no,
            org=execution.org,
            fire_at=event.expires_at,
            promise=event.name,
        )
        uow.add_timer(execution, row)


def settle_early(uow: UnitOfWork, execution: Execution, name: str, *, settled: Settled, expires_at: int) -> PromiseRow:
    """Keep a settlement for a promise that is not there yet."""
    promise = PromiseRow(
        execution_id=execution.id,
        name=name,
        org=execution.org,
        promise_no=0,
        state=settled.state,
        created_at=uow.now,
        value=settled.value,
        failure=settled.failure,
        settled_at=uow.now,
        settled_by=settled.by,
        expires_at=expires_at,
    )
    uow.loaded.promises[execution.id, name] = uow.changes.promises[execution.id, name] = promise
    return promise


class Settled:
    """How a promise is to end."""

    __slots__ = ("by", "failure", "state", "value")

    def __init__(
        self,
        state: PromiseState,
        *,
        value: Payload = NULL,
        failure: Failure | None = None,
        by: Settlement | None = None,
    ) -> None:
        self.state = state
        self.value = value
        self.failure = failure
        self.by = by


def settle(uow: UnitOfWork, execution: Execution, promise: PromiseRow, settled: Settled) -> bool:
    """Whether this settlement is the first: every later one changes nothing. A value that does not fit is refused."""
    if promise.state is not PromiseState.PENDING:
        return False
    check_open(execution, promise)
    if settled.state is PromiseState.RESOLVED:
        check_value(promise.id, promise.shape, settled.value)
    _end(uow, execution, promise, settled)
    _deliver_outcome(uow, execution, promise)
    return True


def cancel(uow: UnitOfWork, execution: Execution, name: str) -> None:
    """Its workflow no longer wants it."""
    promise = uow.loaded.promises.get((execution.id, name))
    if promise is not None and promise.state is PromiseState.PENDING:
        _end(uow, execution, promise, Settled(PromiseState.CANCELLED))


def _given_up(uow: UnitOfWork, promise: PromiseRow) -> bool:
    """Whether its workflow has cancelled it in this very transaction."""
    return any(
        isinstance(event.body, e.PromiseCancelled) and event.body.promise_no == promise.promise_no
        for event in uow.appended.get(promise.execution_id, ())
    )


def check_open(execution: Execution, promise: PromiseRow) -> None:
    if not execution.is_open:
        raise ExecutionClosed(
            f"promise {promise.id} was never settled, and its execution is closed ({execution.status})",
            execution_id=execution.id,
            status=execution.status.value,
            promise=promise.name,
            # The next run of one that continued has promises of its own; one that was reset has these again.
            **({"successor": execution.successor} if execution.state is not State.CONTINUED else {}),
        )


def _end(uow: UnitOfWork, execution: Execution, promise: PromiseRow, settled: Settled) -> None:
    promise.state = settled.state
    promise.value = settled.value
    promise.failure = settled.failure
    promise.settled_by = settled.by
    promise.settled_at = uow.now
    uow.changes.promises[execution.id, promise.name] = promise
    if promise.timer_no is not None:
        uow.forget_timer(execution, promise.timer_no)
    if promise.event_key is not None:
        uow.drop_wait(execution, -promise.promise_no)


def _deliver_outcome(uow: UnitOfWork, execution: Execution, promise: PromiseRow) -> None:
    uow.append(execution, outcome(promise))
    wake(uow, execution)


def outcome(promise: PromiseRow) -> e.EventBody:
    """A settled promise as the history of its execution tells it."""
    number, name = promise.promise_no, promise.name
    if promise.state is PromiseState.RESOLVED:
        return e.PromiseResolved(promise_no=number, name=name, value=promise.value, settled_by=promise.settled_by)
    if promise.state is PromiseState.REJECTED:
        assert promise.failure is not None, "rejected with a failure"
        return e.PromiseRejected(promise_no=number, name=name, failure=promise.failure, settled_by=promise.settled_by)
    return e.PromiseTimedOut(promise_no=number, name=name)
