"""Open a worker session and make its workflow kinds known."""

from __future__ import annotations

from holdfast.contract.workers import RegisterWorker
from holdfast.engine.operation import Operation
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.executions import DefinitionRow, WorkerRow
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Register(Operation[RegisterWorker, None]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.workers.add(self.request.session)
        for kind, _ in self.request.builds:
            plan.definitions.add((self.request.org, kind))

    def decide(self, ws: Workspace) -> None:
        request = self.request
        ws.changes.workers[request.session] = WorkerRow(
            id=request.session,
            org=request.org,
            host=request.host,
            pid=request.pid,
            started_at=ws.now,
            lease_until_at=ws.now + int(request.lease_s * MICRO),
        )
        for (kind, version), build in request.builds.items():
            known = ws.loaded.definitions.setdefault((request.org, kind), [])
            if not any(row.version == version and row.build == build for row in known):
                row = DefinitionRow(org=request.org, kind=kind, version=version, build=build, registered_at=ws.now)
                known.append(row)
                ws.changes.definitions.append(row)
