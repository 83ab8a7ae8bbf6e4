"""Appending a signal to one execution."""

from __future__ import annotations

from holdfast.contract.executions import SignalWithStart, SignalWorkflow
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import ExecutionClosed, SignalLimitReached
from holdfast.model.events import SignalReceived
from holdfast.model.executions import Execution


def check_signal(uow: UnitOfWork, execution: Execution) -> None:
    """Refuse what can't be accepted, before anything is changed."""
    if not execution.is_open:
        raise ExecutionClosed(
            f"execution {execution.id} ({execution.workflow_id}) is closed ({execution.status}); the signal was not "
            "delivered: signal-with-start begins a fresh execution",
            execution_id=execution.id,
            status=execution.status.value,
            **({"successor": execution.successor} if execution.successor is not None else {}),
        )
    limit = uow.config.limits.signals_per_execution
    if execution.signal_count >= limit:
        raise SignalLimitReached(
            f"execution {execution.id} has received {execution.signal_count} signals, the most allowed ({limit}); "
            "nothing was appended",
            execution_id=execution.id,
            limit=limit,
        )


def append_signal(uow: UnitOfWork, execution: Execution, request: SignalWorkflow | SignalWithStart) -> int:
    signal = SignalReceived(
        signal_name=request.signal_name, signal_value=request.signal_value, request_id=request.request_id
    )
    return receive_signal(uow, execution, signal)


def receive_signal(uow: UnitOfWork, execution: Execution, signal: SignalReceived) -> int:
    """The number the signal has got in the execution's history."""
    event = uow.append(execution, signal)
    execution.signal_count += 1
    execution.call_seq = event.seq
    wake(uow, execution)
    return event.seq
