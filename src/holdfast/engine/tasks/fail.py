"""Record that a task's running attempt failed: it is tried again, or the failure reaches the workflow."""

from __future__ import annotations

from holdfast.contract.workers import FailTask
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Fail(Operation[FailTask, None]):
    __slots__ = ()
    RETRY_ON_OUTAGE = True
    RELEASES_SLOT = "task"

    def plan(self, plan: LoadPlan) -> None:
        plan.tasks.add((self.request.execution_id, self.request.task_no))
        plan.executions.add(self.request.execution_id)

    def decide(self, uow: UnitOfWork) -> None:
        request = self.request
        task = uow.task(request.org, (request.execution_id, request.task_no), request.token)
        execution = uow.execution(request.org, request.execution_id)
        uow.place.task_done(request.session)
        output.record(uow, task, request.output)
        if request.details is not None:
            task.details = request.details
        tasks.fail_attempt(uow, execution, task, request.failure)

    def on_refused(self, uow: UnitOfWork) -> None:
        uow.place.task_done(self.request.session)
