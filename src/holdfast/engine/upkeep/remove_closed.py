"""Remove executions that have been closed for long: heads, histories, dead letters, promises, everything."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.engine.operation import Operation
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.executions import Execution
from holdfast.store.protocol import LoadPlan


class Over(NamedTuple):
    """Executions that were found closed before an instant."""

    ids: tuple[str, ...]
    before: int


class RemoveClosed(Operation[Over, int]):
    """Answers how many are gone. One that somebody else is at work on stays for the next time."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.idle_executions.update(self.request.ids)

    def decide(self, ws: Workspace) -> int:
        gone = 0
        for execution_id in self.request.ids:
            execution = ws.loaded.executions.get(execution_id)
            if execution is not None and self._is_over(ws, execution):
                _remove(ws, execution)
                gone += 1
        return gone

    def _is_over(self, ws: Workspace, execution: Execution) -> bool:
        closed_at = execution.closed_at
        if closed_at is None or closed_at >= self.request.before or execution.open_children:
            return False
        return execution.id not in ws.changes.changed_executions and execution.id not in ws.changes.removed


def _remove(ws: Workspace, execution: Execution) -> None:
    """What comes after it in the same batch does not find it any more."""
    ws.changes.removed[execution.id] = execution
    del ws.loaded.executions[execution.id]
    key = execution.org, execution.workflow_id
    if ws.loaded.workflow_keys.get(key) == execution.id:
        del ws.loaded.workflow_keys[key]
