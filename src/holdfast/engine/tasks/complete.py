"""Record the result of a task's running attempt."""

from __future__ import annotations

from holdfast.contract.workers import CompleteTask
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Complete(Operation[CompleteTask, None]):
    __slots__ = ()
    PATIENT = True
    FREES = "task"

    def plan(self, plan: LoadPlan) -> None:
        plan.tasks.add((self.request.execution_id, self.request.task_no))
        plan.executions.add(self.request.execution_id)

    def decide(self, ws: Workspace) -> None:
        request = self.request
        task = ws.task(request.org, (request.execution_id, request.task_no), request.token)
        execution = ws.execution(request.org, request.execution_id)
        if request.output:
            output.record(ws, task, request.output)
        tasks.complete(ws, execution, task, request.result)
        ws.place.task_done(request.session)

    def undecided(self, ws: Workspace) -> None:
        ws.place.task_done(self.request.session)
