"""Ask an execution to cancel: its program gets CancelledError at its await and may clean up."""

from __future__ import annotations

from holdfast.contract.executions import CancelExecution, Changed
from holdfast.engine.operation import Operation
from holdfast.engine.rules.children import request_cancel
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Cancel(Operation[CancelExecution, Changed]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, uow: UnitOfWork) -> Changed:
        execution = uow.execution(self.request.org, self.request.workflow_execution_id)
        if not execution.is_open:
            return Changed(False, execution.successor)
        return Changed(request_cancel(uow, execution, self.request.reason))
