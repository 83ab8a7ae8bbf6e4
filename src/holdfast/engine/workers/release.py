"""Hand work back: what was not started or was interrupted is free for others at once, with no attempt counted."""

from __future__ import annotations

from holdfast.contract.workers import ReleaseWork
from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.leases import check_holder, give_up_slot, hand_back, offer
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import ExecutionNotFound, StaleAttempt, StaleClaim
from holdfast.store.protocol import LoadPlan


class Release(Operation[ReleaseWork, None]):
    __slots__ = ()
    RETRY_ON_OUTAGE = True

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.update(execution_id for execution_id, _ in self.request.turns)
        plan.tasks.update((execution_id, task_no) for execution_id, task_no, _ in self.request.tasks)

    def decide(self, uow: UnitOfWork) -> None:
        request = self.request
        for execution_id, token in request.turns:
            try:
                execution = uow.execution(request.org, execution_id)
                check_holder(execution, token)
            except (ExecutionNotFound, StaleClaim):
                give_up_slot(uow, execution_id)
                continue
            hand_back(uow, execution)
            offer(uow, execution)
        for execution_id, task_no, token in request.tasks:
            uow.place.task_done(request.session)
            try:
                task = uow.task(request.org, (execution_id, task_no), token)
            except StaleAttempt:
                continue
            tasks.hand_back(uow, task)
