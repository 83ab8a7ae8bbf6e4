"""Record that a task's running attempt failed: it is tried again, or the failure reaches the workflow."""

from __future__ import annotations

from holdfast.contract.workers import FailTask
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Fail(Operation[FailTask, None]):
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
        ws.place.task_done(request.session)
        output.record(ws, task, request.output)
        if request.details is not None:
            task.details = request.details
        tasks.fail_attempt(ws, execution, task, request.failure)

    def undecided(self, ws: Workspace) -> None:
        ws.place.task_done(self.request.session)
