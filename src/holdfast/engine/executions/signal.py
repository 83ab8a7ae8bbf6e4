"""Send a signal to an open execution."""

from __future__ import annotations

from holdfast.contract.executions import SignalResponse, SignalWorkflow
from holdfast.engine.operation import Operation
from holdfast.engine.rules.signalling import append_signal, check_signal
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Signal(Operation[SignalWorkflow, SignalResponse]):
    __slots__ = ()
    ANSWER = SignalResponse

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, ws: Workspace) -> SignalResponse:
        execution = ws.execution(self.request.org, self.request.workflow_execution_id)
        check_signal(ws, execution)
        return SignalResponse(append_signal(ws, execution, self.request))
