"""Park an execution whose program can't go on, with the reason."""

from __future__ import annotations

from holdfast.contract.workers import ParkTurn
from holdfast.engine.operation import Operation
from holdfast.engine.rules.leases import check_here, check_holder, give_up_slot, park
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Park(Operation[ParkTurn, None]):
    __slots__ = ()
    RETRY_ON_OUTAGE = True
    RELEASES_SLOT = "turn"

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.execution_id)

    def decide(self, uow: UnitOfWork) -> None:
        execution = uow.execution(self.request.org, self.request.execution_id)
        check_here(uow, execution, check_holder(execution, self.request.token))
        park(uow, execution, self.request.reason)

    def on_refused(self, uow: UnitOfWork) -> None:
        give_up_slot(uow, self.request.execution_id)
