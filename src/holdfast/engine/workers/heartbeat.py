"""Keep a session and its tasks alive."""

from __future__ import annotations

from holdfast.contract.workers import Heartbeat, HeartbeatAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import StaleAttempt
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Beat(Operation[Heartbeat, HeartbeatAnswer]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.workers.add(self.request.session)
        for beat in self.request.tasks:
            plan.tasks.add((beat.execution_id, beat.task_no))

    def decide(self, ws: Workspace) -> HeartbeatAnswer:
        request = self.request
        worker = ws.loaded.workers.get(request.session)
        if worker is None:
            return HeartbeatAnswer(alive=False)
        worker.lease_until_at = ws.now + int(request.lease_s * MICRO)
        ws.changes.workers[worker.id] = worker
        stale = []
        for beat in request.tasks:
            try:
                task = ws.task(request.org, (beat.execution_id, beat.task_no), beat.token)
            except StaleAttempt:
                stale.append((beat.execution_id, beat.task_no))
                continue
            if beat.details is not None:
                task.details = beat.details
            if beat.progress is not None:
                task.progress = beat.progress
            tasks.beat(ws, task)
        return HeartbeatAnswer(alive=True, stale=tuple(stale))
