"""End a session. Whatever it still holds is free at once; its turns do not count as crashes."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.leases import hand_back, offer
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.executions import WorkerRow
from holdfast.model.pauses import Pausable, Pause
from holdfast.store.protocol import LoadPlan


class UnregisterWorker(NamedTuple):
    org: str
    session: str


class Unregister(Operation[UnregisterWorker, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.want(WorkerRow, self.request.session)
        plan.held_by.add(self.request.session)

    def decide(self, ws: Workspace) -> None:
        session = self.request.session
        for execution_id in ws.loaded.held_turns:
            execution = ws.loaded.executions[execution_id]
            if execution.ready is not None and execution.ready.worker == session:
                hand_back(ws, execution)
                offer(ws, execution)
        for key in ws.loaded.held_tasks:
            task = ws.loaded.tasks.get(key)
            if task is not None and task.worker == session:
                tasks.hand_back(ws, task)
        ws.drop(WorkerRow, session)
        ws.drop(Pause, (self.request.org, Pausable.WORKER, session))
