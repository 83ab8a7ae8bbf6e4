"""Keep a session and its tasks alive."""

from __future__ import annotations

from holdfast.contract.workers import Heartbeat, HeartbeatAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.rules import output, tasks
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import StaleAttempt
from holdfast.model.executions import TaskRow
from holdfast.model.values import MICRO, Token
from holdfast.store.protocol import LoadPlan


class RecordHeartbeat(Operation[Heartbeat, HeartbeatAnswer]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.workers.add(self.request.session)
        for beat in self.request.tasks:
            plan.tasks.add((beat.execution_id, beat.task_no))
        plan.tasks.update((execution_id, task_no) for execution_id, task_no, _ in self.request.running)

    def decide(self, uow: UnitOfWork) -> HeartbeatAnswer:
        request = self.request
        worker = uow.loaded.workers.get(request.session)
        if worker is None:
            # Another process has taken back what it held: here, too, nobody may give it anything more.
            uow.place.retire(request.session)
            return HeartbeatAnswer(alive=False)
        worker.lease_until_at = uow.now + int(request.lease_s * MICRO)
        uow.changes.workers[worker.id] = worker
        uow.place.alive(worker.id)
        stale = {
            (key, number, token.epoch): None
            for key, number, token in request.running
            if self._find(uow, key, number, token) is None
        }
        for beat in request.tasks:
            task = self._find(uow, beat.execution_id, beat.task_no, beat.token)
            if task is None:
                stale[beat.execution_id, beat.task_no, beat.token.epoch] = None
                continue
            if beat.output:
                output.record(uow, task, beat.output)
            if beat.details is not None:
                task.details = beat.details
            if beat.progress is not None:
                task.progress = beat.progress
            tasks.beat(uow, task)
        return HeartbeatAnswer(alive=True, stale=tuple(stale))

    def _find(self, uow: UnitOfWork, execution_id: str, task_no: int, token: Token) -> TaskRow | None:
        try:
            return uow.task(self.request.org, (execution_id, task_no), token)
        except StaleAttempt:
            return None
