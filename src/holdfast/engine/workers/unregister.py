"""End a session. Whatever it still holds is free at once; its turns do not count as crashes."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.leases import hand_back, offer
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class UnregisterWorker(NamedTuple):
    org: str
    session: str


class Unregister(Operation[UnregisterWorker, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.workers.add(self.request.session)
        plan.held_by.add(self.request.session)

    def decide(self, uow: UnitOfWork) -> None:
        session = self.request.session
        for execution_id in uow.loaded.held_turns:
            execution = uow.loaded.executions[execution_id]
            if execution.ready is not None and execution.ready.worker == session:
                hand_back(uow, execution)
                offer(uow, execution)
        for key in uow.loaded.held_tasks:
            task = uow.loaded.tasks.get(key)
            if task is not None and task.worker == session:
                tasks.hand_back(uow, task)
        uow.loaded.workers.pop(session, None)
        uow.changes.workers.pop(session, None)
        uow.changes.deleted_workers.append(session)
