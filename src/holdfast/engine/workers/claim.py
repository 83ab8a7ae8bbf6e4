"""Look for waiting work for the sessions of this process: the batch that carries this hands out what it finds."""

from __future__ import annotations

from holdfast.engine.desk import Desk
from holdfast.engine.operation import Operation
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Claim(Operation[Desk, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        for session in self.request.sessions.values():
            session.look_again()

    def decide(self, ws: Workspace) -> None:
        """Nothing to decide: see engine/refill.py."""
