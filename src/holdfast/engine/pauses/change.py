"""Pause a queue or a worker, drain a worker, or let it go on."""

from __future__ import annotations

from holdfast.contract.deployments import ChangePause, PauseAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import AuditEntry, check_actor, open_org, plan_actor, record
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import WorkerDraining, WorkerNotFound
from holdfast.model.keys import Role
from holdfast.model.pauses import Pausable, Pause, PauseMode
from holdfast.store.protocol import LoadPlan

_VERBS = {None: "resume", PauseMode.PAUSED: "pause", PauseMode.DRAINING: "drain"}


class Change(Operation[ChangePause, PauseAnswer]):
    __slots__ = ("chain",)

    def __init__(self, request: ChangePause, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan_actor(plan, request.org, request.by)
        plan.pauses.add(request.key)
        if request.what is Pausable.WORKER:
            plan.workers.add(request.name)

    def decide(self, uow: UnitOfWork) -> PauseAnswer:
        request = self.request
        check_actor(uow, request.by, request.org, Role.ADMIN)
        self._check_worker(uow)
        org = open_org(uow, request.org)
        before = uow.loaded.pauses.get(request.key)
        if (before.mode if before is not None else None) is request.mode:
            return PauseAnswer(changed=False, pause=before)
        if before is not None and before.mode is PauseMode.DRAINING:
            raise WorkerDraining(
                f"worker {request.name} is being drained, and that is for good: start another one",
                worker_id=request.name,
            )
        after = self._put(uow)
        act = AuditEntry(
            org=request.org,
            action=f"{request.what.value}s.{_VERBS[request.mode]}",
            by=request.by,
            chain=self.chain,
            subject=request.name,
            address=request.address,
            detail=request.reason,
        )
        record(uow, org, act)
        return PauseAnswer(changed=True, pause=after)

    def _check_worker(self, uow: UnitOfWork) -> None:
        request = self.request
        if request.what is not Pausable.WORKER:
            return
        worker = uow.loaded.workers.get(request.name)
        if worker is None or worker.org != request.org:
            raise WorkerNotFound(
                f"no worker session {request.name!r} in org {request.org!r}: it may have ended; list the workers",
                worker_id=request.name,
            )

    def _put(self, uow: UnitOfWork) -> Pause | None:
        request, key = self.request, self.request.key
        if request.mode is None:
            uow.loaded.pauses.pop(key, None)
            uow.changes.pauses.pop(key, None)
            uow.changes.deleted_pauses.append(key)
            return None
        pause = Pause(
            org=request.org,
            what=request.what,
            name=request.name,
            mode=request.mode,
            since_at=uow.now,
            reason=request.reason,
        )
        # What an operation before this one has let go on is written after it was removed.
        uow.loaded.pauses[key] = uow.changes.pauses[key] = pause
        return pause
