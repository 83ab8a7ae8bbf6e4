"""Record the result of a task's running attempt."""

from __future__ import annotations

from holdfast.contract.workers import CompleteTask
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Complete(Operation[CompleteTask, None]):
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
        if request.output:
            output.record(uow, task, request.output)
        tasks.complete(uow, execution, task, request.result)
        uow.place.task_done(request.session)

    def on_refused(self, uow: UnitOfWork) -> None:
        uow.place.task_done(self.request.session)
