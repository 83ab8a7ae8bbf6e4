"""Claim unleased work for a session of this process."""

from __future__ import annotations

import msgspec

from holdfast.engine.operation import Operation
from holdfast.engine.rules.leases import grant
from holdfast.engine.rules.tasks import start_attempt
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan, TaskClaim, TurnClaim


class ClaimWork(msgspec.Struct, frozen=True):
    session: str
    turns: TurnClaim | None
    tasks: TaskClaim | None


class Claim(Operation[ClaimWork, int]):
    """Answers how many pieces of work were handed out."""

    __slots__ = ("_task_index", "_turn_index")

    def plan(self, plan: LoadPlan) -> None:
        if self.request.turns is not None:
            self._turn_index = len(plan.turn_claims)
            plan.turn_claims.append(self.request.turns)
        if self.request.tasks is not None:
            self._task_index = len(plan.task_claims)
            plan.task_claims.append(self.request.tasks)

    def decide(self, ws: Workspace) -> int:
        session = self.request.session
        if not ws.place.is_local(session):
            return 0
        count = 0
        if self.request.turns is not None:
            for execution_id in ws.loaded.turn_claims[self._turn_index]:
                execution = ws.loaded.executions[execution_id]
                # An operation before this one in the batch may have closed or leased it.
                if execution.is_open and execution.ready is not None and execution.ready.worker is None:
                    grant(ws, execution, session)
                    ws.place.turn_taken(session)
                    count += 1
        if self.request.tasks is not None:
            for key in ws.loaded.task_claims[self._task_index]:
                task = ws.loaded.tasks.get(key)
                if task is not None and task.worker is None:
                    start_attempt(ws, task, session)
                    ws.place.task_taken(session)
                    count += 1
        return count
