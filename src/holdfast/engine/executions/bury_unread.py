"""Make dead letters of the signals that a closed execution has left unread."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.contract.mailboxes import BuryUnread
from holdfast.engine.operation import Operation
from holdfast.engine.rules.closing import bury
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import ExecutionOpen
from holdfast.store.protocol import LoadPlan


class Bury(Operation[BuryUnread, int]):
    """`seqs` are the numbers of these signals: only the program knows which of those it has seen it has not read."""

    __slots__ = ("_seqs",)

    def __init__(self, request: BuryUnread, seqs: Sequence[int]) -> None:
        super().__init__(request)
        self._seqs = seqs

    def plan(self, plan: LoadPlan) -> None:
        plan.executions.add(self.request.workflow_execution_id)
        plan.dead_letters.update((self.request.workflow_execution_id, seq) for seq in self._seqs)

    def decide(self, ws: Workspace) -> int:
        execution = ws.execution(self.request.org, self.request.workflow_execution_id)
        if execution.is_open:
            raise ExecutionOpen(
                f"execution {execution.id} ({execution.workflow_id}) is open: it may still read its signals",
                execution_id=execution.id,
            )
        if execution.successor is not None:
            return 0  # which has taken them over since they were counted
        new = [seq for seq in self._seqs if (execution.id, seq) not in ws.loaded.dead_letters]
        for seq in new:
            bury(ws, execution, seq, self.request.reason)
        return len(new)
