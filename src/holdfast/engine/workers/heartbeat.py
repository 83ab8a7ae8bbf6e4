"""Keep a session and its tasks alive."""

from __future__ import annotations

from holdfast.contract.workers import Heartbeat, HeartbeatAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import StaleAttempt
from holdfast.model.executions import TaskRow, WorkerRow
from holdfast.model.values import MICRO, Token
from holdfast.store.protocol import LoadPlan


class Beat(Operation[Heartbeat, HeartbeatAnswer]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.want(WorkerRow, self.request.session)
        for beat in self.request.tasks:
            plan.tasks.add((beat.execution_id, beat.task_no))
        plan.tasks.update((execution_id, task_no) for execution_id, task_no, _ in self.request.running)

    def decide(self, ws: Workspace) -> HeartbeatAnswer:
        request = self.request
        worker = ws.get(WorkerRow, request.session)
        if worker is None:
            # Another process has taken back what it held: here, too, nobody may give it anything more.
            ws.place.retire(request.session)
            return HeartbeatAnswer(alive=False)
        worker.lease_until_at = ws.now + int(request.lease_s * MICRO)
        ws.put(worker)
        ws.place.alive(worker.id)
        stale = {
            (key, number, token.epoch): None
            for key, number, token in request.running
            if self._find(ws, key, number, token) is None
        }
        for beat in request.tasks:
            task = self._find(ws, beat.execution_id, beat.task_no, beat.token)
            if task is None:
                stale[beat.execution_id, beat.task_no, beat.token.epoch] = None
                continue
            if beat.output:
                output.record(ws, task, beat.output)
            if beat.details is not None:
                task.details = beat.details
            if beat.progress is not None:
                task.progress = beat.progress
            tasks.beat(ws, task)
        return HeartbeatAnswer(alive=True, stale=tuple(stale))

    def _find(self, ws: Workspace, execution_id: str, task_no: int, token: Token) -> TaskRow | None:
        try:
            return ws.task(self.request.org, (execution_id, task_no), token)
        except StaleAttempt:
            return None
