"""End an execution at once, without asking its program."""

from __future__ import annotations

from holdfast.contract.executions import Changed, TerminateExecution
from holdfast.engine.api import decides
from holdfast.engine.operation import Operation
from holdfast.engine.rules.closing import end_from_outside
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.events import WorkflowTerminated
from holdfast.model.executions import State
from holdfast.store.protocol import LoadPlan


@decides(TerminateExecution)
class Terminate(Operation[TerminateExecution, Changed]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, ws: Workspace) -> Changed:
        execution = ws.execution(self.request.org, self.request.workflow_execution_id)
        if not execution.is_open:
            return Changed(False, execution.successor)
        end_from_outside(ws, execution, State.TERMINATED, WorkflowTerminated(reason=self.request.reason))
        return Changed(True)
