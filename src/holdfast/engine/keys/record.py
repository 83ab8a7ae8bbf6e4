"""Add an act to the record of its org."""

from __future__ import annotations

from holdfast.contract.keys import RecordAct
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.keys import AuditRow, Org
from holdfast.store.protocol import LoadPlan


class Record(Operation[RecordAct, AuditRow]):
    __slots__ = ("chain",)

    def __init__(self, request: RecordAct, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan.want(Org, self.request.org)

    def decide(self, ws: Workspace) -> AuditRow:
        request = self.request
        # Also of an org that is closed: what is done there is done.
        org = ws.get(Org, request.org) or Org(slug=request.org, created_at=ws.now)
        act = Act(
            org=request.org,
            action=request.action,
            by=request.by,
            chain=self.chain,
            subject=request.subject,
            address=request.address,
            outcome=request.outcome,
            detail=request.detail,
        )
        return record(ws, org, act)
