"""One session takes the place of another: the tasks that its worker still runs go with it, the rest is free at once.

It is the same worker: if it was paused, it stays so.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.contract.workers import ReplaceSession, RunningAttempt
from holdfast.engine.operation import Operation
from holdfast.engine.rules import tasks
from holdfast.engine.rules.leases import hand_back, offer
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.pauses import Pausable
from holdfast.store.protocol import LoadPlan


class Replace(Operation[ReplaceSession, tuple[RunningAttempt, ...]]):
    __slots__ = ()
    RETRY_ON_OUTAGE = True

    def plan(self, plan: LoadPlan) -> None:
        plan.workers.add(self.request.session)
        plan.held_by.add(self.request.session)
        plan.pauses.add((self.request.org, Pausable.WORKER, self.request.session))

    def decide(self, uow: UnitOfWork) -> tuple[RunningAttempt, ...]:
        """The attempts that have gone over. One that is not among them no longer counts."""
        request = self.request
        running = {(execution_id, task_no): token for execution_id, task_no, token in request.running}
        kept: list[RunningAttempt] = []
        for execution_id in uow.loaded.held_turns:
            execution = uow.loaded.executions[execution_id]
            if execution.org == request.org and execution.ready and execution.ready.worker == request.session:
                hand_back(uow, execution)
                offer(uow, execution)
        for key in uow.loaded.held_tasks:
            task = uow.loaded.tasks.get(key)
            if task is None or task.org != request.org or task.worker != request.session:
                continue
            token = running.get(key)
            if token is not None and (token.epoch, token.nonce) == (task.attempt, task.nonce):
                task.worker = request.by
                uow.touch_task(task)
                kept.append((*key, token))
            else:
                tasks.hand_back(uow, task)
        uow.loaded.workers.pop(request.session, None)
        uow.changes.workers.pop(request.session, None)
        uow.changes.deleted_workers.append(request.session)
        pause = uow.loaded.pauses.get((request.org, Pausable.WORKER, request.session))
        if pause is not None:
            heir = replace(pause, name=request.by)
            uow.loaded.pauses[heir.key] = uow.changes.pauses[heir.key] = heir
        return tuple(kept)
