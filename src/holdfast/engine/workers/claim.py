"""Look for waiting work for the sessions of this process: the batch that carries this hands out what it finds."""

from __future__ import annotations

from holdfast.engine.dispatcher import Dispatcher
from holdfast.engine.operation import Operation
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Claim(Operation[Dispatcher, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        for session in self.request.sessions.values():
            session.recheck_store()

    def decide(self, uow: UnitOfWork) -> None:
        """Nothing to decide: see engine/backfill.py."""
