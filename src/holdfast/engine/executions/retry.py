"""Try a closed execution again, from just before what ended it."""

from __future__ import annotations

from holdfast.contract.executions import StartAnswer
from holdfast.engine.executions.reset import Reset
from holdfast.engine.rules.unit_of_work import UnitOfWork


class Retry(Reset):
    """A reset with all signals, and with the whole of its execution timeout."""

    __slots__ = ()

    def decide(self, uow: UnitOfWork) -> StartAnswer:
        return self.replace(uow, reapply=True, anew=True)
