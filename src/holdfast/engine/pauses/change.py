"""Pause a queue or a worker, drain a worker, or let it go on."""

from __future__ import annotations

from holdfast.contract.deployments import ChangePause, PauseAnswer
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, check_actor, open_org, plan_actor, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import WorkerDraining, WorkerNotFound
from holdfast.model.executions import WorkerRow
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
        plan.want(Pause, request.key)
        if request.what is Pausable.WORKER:
            plan.want(WorkerRow, request.name)

    def decide(self, ws: Workspace) -> PauseAnswer:
        request = self.request
        check_actor(ws, request.by, request.org, Role.ADMIN)
        self._check_worker(ws)
        org = open_org(ws, request.org)
        before = ws.get(Pause, request.key)
        if (before.mode if before is not None else None) is request.mode:
            return PauseAnswer(changed=False, pause=before)
        if before is not None and before.mode is PauseMode.DRAINING:
            raise WorkerDraining(
                f"worker {request.name} is being drained, and that is for good: start another one",
                worker_id=request.name,
            )
        after = self._put(ws)
        act = Act(
            org=request.org,
            action=f"{request.what.value}s.{_VERBS[request.mode]}",
            by=request.by,
            chain=self.chain,
            subject=request.name,
            address=request.address,
            detail=request.reason,
        )
        record(ws, org, act)
        return PauseAnswer(changed=True, pause=after)

    def _check_worker(self, ws: Workspace) -> None:
        request = self.request
        if request.what is not Pausable.WORKER:
            return
        worker = ws.get(WorkerRow, request.name)
        if worker is None or worker.org != request.org:
            raise WorkerNotFound(
                f"no worker session {request.name!r} in org {request.org!r}: it may have ended; list the workers",
                worker_id=request.name,
            )

    def _put(self, ws: Workspace) -> Pause | None:
        request = self.request
        if request.mode is None:
            ws.drop(Pause, request.key)
            return None
        pause = Pause(
            org=request.org,
            what=request.what,
            name=request.name,
            mode=request.mode,
            since_at=ws.now,
            reason=request.reason,
        )
        ws.put(pause)
        return pause
