"""Start an execution, or find the open one with the same workflow id."""

from __future__ import annotations

from holdfast.contract.executions import StartAnswer, StartWorkflow
from holdfast.engine.operation import Operation
from holdfast.engine.rules.starting import begin, choose_version, open_execution
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Start(Operation[StartWorkflow, StartAnswer]):
    __slots__ = ()
    ANSWER = StartAnswer

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan.definitions.add((request.org, request.kind))
        if request.workflow_id is not None:
            plan.workflow_keys.add((request.org, request.workflow_id))

    def decide(self, ws: Workspace) -> StartAnswer:
        request = self.request
        version = choose_version(ws, request.org, request.kind, request.version)
        if request.workflow_id is not None:
            running = open_execution(ws, request.org, request.workflow_id)
            if running is not None:
                return StartAnswer(running.id, running.workflow_id, False)
        execution = begin(ws, request, version)
        return StartAnswer(execution.id, execution.workflow_id, True)
