"""The next page of what is on its way to many."""

from __future__ import annotations

from holdfast.engine.operation import Operation
from holdfast.engine.rules.messages import PAGE, continue_deliveries
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Deliver(Operation[None, bool]):
    """Answers whether there may be more: what was sent later, or another page."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.deliveries = PAGE

    def decide(self, uow: UnitOfWork) -> bool:
        return continue_deliveries(uow)
