"""Pause a queue or a worker, drain a worker, or let it go on."""

from __future__ import annotations

from holdfast.contract.deployments import ChangePause, PauseAnswer
from holdfast.engine.keys.audited import AuditedOperation
from holdfast.engine.rules.keys import check_actor, open_org, plan_actor
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import WorkerDraining, WorkerNotFound
from holdfast.model.keys import Role
from holdfast.model.pauses import Pausable, Pause, PauseMode
from holdfast.store.protocol import LoadPlan

_VERBS = {None: "resume", PauseMode.PAUSED: "pause", PauseMode.DRAINING: "drain"}


class Change(AuditedOperation[ChangePause, PauseAnswer]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        request = self.request
        plan_actor(plan, request.org, request.by)
        plan.pauses.add(request.key)
        if request.what is Pausable.WORKER:
            plan.workers.add(request.name)

    def decide(self, ws: Workspace) -> PauseAnswer:
        request = self.request
        check_actor(ws, request.by, request.org, Role.ADMIN)
        self._check_worker(ws)
        org = open_org(ws, request.org)
        before = ws.loaded.pauses.get(request.key)
        if (before.mode if before is not None else None) is request.mode:
            return PauseAnswer(changed=False, pause=before)
        if before is not None and before.mode is PauseMode.DRAINING:
            raise WorkerDraining(
                f"worker {request.name} is being drained, and that is for good: start another one",
                worker_id=request.name,
            )
        after = self._put(ws)
        action = f"{request.what.value}s.{_VERBS[request.mode]}"
        self.record(ws, org, action, subject=request.name, detail=request.reason)
        return PauseAnswer(changed=True, pause=after)

    def _check_worker(self, ws: Workspace) -> None:
        request = self.request
        if request.what is not Pausable.WORKER:
            return
        worker = ws.loaded.workers.get(request.name)
        if worker is None or worker.org != request.org:
            raise WorkerNotFound(
                f"no worker session {request.name!r} in org {request.org!r}: it may have ended; list the workers",
                worker_id=request.name,
            )

    def _put(self, ws: Workspace) -> Pause | None:
        request, key = self.request, self.request.key
        if request.mode is None:
            ws.loaded.pauses.pop(key, None)
            ws.changes.pauses.pop(key, None)
            ws.changes.deleted_pauses.append(key)
            return None
        pause = Pause(
            org=request.org,
            what=request.what,
            name=request.name,
            mode=request.mode,
            since_at=ws.now,
            reason=request.reason,
        )
        # What an operation before this one has let go on is written after it was removed.
        ws.loaded.pauses[key] = ws.changes.pauses[key] = pause
        return pause
