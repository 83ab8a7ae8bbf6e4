"""Ask an open execution for an update: the request is an event, the answer another one."""

from __future__ import annotations

from holdfast.contract.calls import RequestUpdate, UpdateTicket
from holdfast.engine.operation import Operation
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import ExecutionClosed
from holdfast.model.events import UpdateRequested
from holdfast.store.protocol import LoadPlan


class Update(Operation[RequestUpdate, UpdateTicket]):
    """`update_id` has been made where the caller gave none; with the request id, the same update is asked for once."""

    __slots__ = ()
    ANSWER = UpdateTicket

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, uow: UnitOfWork) -> UpdateTicket:
        request = self.request
        assert request.update_id is not None, "made at the door"
        execution = uow.execution(request.org, request.workflow_execution_id)
        if not execution.is_open:
            raise ExecutionClosed(
                f"execution {execution.id} ({execution.workflow_id}) is closed ({execution.status}); the update was "
                "not requested: find_workflow() gives the open execution of a workflow id",
                execution_id=execution.id,
                status=execution.status.value,
                **({"successor": execution.successor} if execution.successor is not None else {}),
            )
        event = uow.append(
            execution,
            UpdateRequested(update_id=request.update_id, update_name=request.update_name, input=request.input),
        )
        # A program must not close over a request it has not seen.
        execution.call_seq = event.seq
        wake(uow, execution)
        return UpdateTicket(execution.id, request.update_id, event.seq)
