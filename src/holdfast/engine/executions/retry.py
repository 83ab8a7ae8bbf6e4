"""Try a closed execution again, from just before what ended it."""

from __future__ import annotations

from holdfast.contract.executions import StartAnswer
from holdfast.engine.executions.reset import Reset
from holdfast.engine.rules.workspace import Workspace


class Retry(Reset):
    """A reset with all signals, and with the whole of its execution timeout."""

    __slots__ = ()

    def decide(self, ws: Workspace) -> StartAnswer:
        return self.replace(ws, reapply=True, anew=True)
