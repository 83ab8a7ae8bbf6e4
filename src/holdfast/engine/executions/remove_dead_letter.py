"""Remove a dead letter that nobody needs any more. The signal stays in the history."""

from __future__ import annotations

from holdfast.contract.mailboxes import RemoveDeadLetter
from holdfast.engine.api import decides
from holdfast.engine.operation import Operation
from holdfast.engine.rules.dead_letters import find, settle
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


@decides(RemoveDeadLetter)
class Remove(Operation[RemoveDeadLetter, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.dead_letters.add((self.request.workflow_execution_id, self.request.seq))

    def decide(self, ws: Workspace) -> None:
        settle(ws, *find(ws, self.request.org, (self.request.workflow_execution_id, self.request.seq)))
