"""Send a signal to an open execution."""

from __future__ import annotations

from holdfast.contract.executions import SignalResponse, SignalWorkflow
from holdfast.engine.operation import Operation
from holdfast.engine.rules.signals import append_signal, check_signal
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Signal(Operation[SignalWorkflow, SignalResponse]):
    __slots__ = ()
    ANSWER = SignalResponse

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, uow: UnitOfWork) -> SignalResponse:
        execution = uow.execution(self.request.org, self.request.workflow_execution_id)
        check_signal(uow, execution)
        return SignalResponse(append_signal(uow, execution, self.request))
