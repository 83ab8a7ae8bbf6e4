"""Park an execution whose program can't go on, with the reason."""

from __future__ import annotations

from holdfast.contract.workers import ParkTurn
from holdfast.engine.operation import Operation
from holdfast.engine.rules.leases import check_here, check_holder, give_up_slot, park
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Park(Operation[ParkTurn, None]):
    __slots__ = ()
    PATIENT = True
    FREES = "turn"

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.execution_id)

    def decide(self, ws: Workspace) -> None:
        execution = ws.execution(self.request.org, self.request.execution_id)
        check_here(ws, execution, check_holder(execution, self.request.token))
        park(ws, execution, self.request.reason)

    def undecided(self, ws: Workspace) -> None:
        give_up_slot(ws, self.request.execution_id)
