"""End an execution at once, without asking its program."""

from __future__ import annotations

from holdfast.contract.executions import Changed, TerminateExecution
from holdfast.engine.operation import Operation
from holdfast.engine.rules.closing import close_externally
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.events import WorkflowTerminated
from holdfast.model.executions import State
from holdfast.store.protocol import LoadPlan


class Terminate(Operation[TerminateExecution, Changed]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, uow: UnitOfWork) -> Changed:
        execution = uow.execution(self.request.org, self.request.workflow_execution_id)
        if not execution.is_open:
            return Changed(False, execution.successor)
        close_externally(uow, execution, State.TERMINATED, WorkflowTerminated(reason=self.request.reason))
        return Changed(True)
