"""Let a stuck execution be tried again at once, by any worker that knows its kind."""

from __future__ import annotations

from holdfast.contract.executions import Changed, ResumeExecution
from holdfast.engine.operation import Operation
from holdfast.engine.rules.leases import offer
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.executions import Ready, State
from holdfast.store.protocol import LoadPlan


class Resume(Operation[ResumeExecution, Changed]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)

    def decide(self, uow: UnitOfWork) -> Changed:
        execution = uow.execution(self.request.org, self.request.workflow_execution_id)
        if execution.state is not State.STUCK:
            return Changed(False)
        execution.state = State.OPEN
        execution.crashes = 0
        execution.ready = Ready(since_at=uow.now)
        uow.mark_state_changed(execution)
        uow.touch_ready(execution)
        offer(uow, execution)
        return Changed(True)
