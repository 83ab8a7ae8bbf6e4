"""One session takes the place of another: the tasks that its worker still runs go with it, the rest is free at once.

It is the same worker: if it was paused, it stays so.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.contract.workers import ReplaceSession, RunningAttempt
from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.leases import hand_back, offer
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.executions import WorkerRow
from holdfast.model.pauses import Pausable, Pause
from holdfast.store.protocol import LoadPlan


class Replace(Operation[ReplaceSession, tuple[RunningAttempt, ...]]):
    __slots__ = ()
    PATIENT = True

    def plan(self, plan: LoadPlan) -> None:
        plan.want(WorkerRow, self.request.session)
        plan.held_by.add(self.request.session)
        plan.want(Pause, (self.request.org, Pausable.WORKER, self.request.session))

    def decide(self, ws: Workspace) -> tuple[RunningAttempt, ...]:
        """The attempts that have gone over. One that is not among them no longer counts."""
        request = self.request
        running = {(execution_id, task_no): token for execution_id, task_no, token in request.running}
        kept: list[RunningAttempt] = []
        for execution_id in ws.loaded.held_turns:
            execution = ws.loaded.executions[execution_id]
            if execution.org == request.org and execution.ready and execution.ready.worker == request.session:
                hand_back(ws, execution)
                offer(ws, execution)
        for key in ws.loaded.held_tasks:
            task = ws.loaded.tasks.get(key)
            if task is None or task.org != request.org or task.worker != request.session:
                continue
            token = running.get(key)
            if token is not None and (token.epoch, token.nonce) == (task.attempt, task.nonce):
                task.worker = request.by
                ws.touch_task(task)
                kept.append((*key, token))
            else:
                tasks.hand_back(ws, task)
        ws.drop(WorkerRow, request.session)
        pause = ws.get(Pause, (request.org, Pausable.WORKER, request.session))
        if pause is not None:
            ws.put(replace(pause, name=request.by))
            ws.drop(Pause, pause.key)
        return tuple(kept)
