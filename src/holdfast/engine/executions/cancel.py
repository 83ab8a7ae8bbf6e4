"""Ask an execution to cancel: its program gets CancelledError at its await and may clean up."""

from __future__ import annotations

from holdfast.contract.executions import CancelExecution, Changed
from holdfast.engine.operation import Operation
from holdfast.engine.rules.leases import wake
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.events import CancelRequested
from holdfast.store.protocol import LoadPlan


class Cancel(Operation[CancelExecution, Changed]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, ws: Workspace) -> Changed:
        execution = ws.execution(self.request.org, self.request.workflow_execution_id)
        if not execution.is_open or execution.cancel_requested:
            return Changed(False)
        event = ws.append(execution, CancelRequested(reason=self.request.reason))
        execution.cancel_requested = True
        execution.call_seq = event.seq
        wake(ws, execution)
        return Changed(True)
