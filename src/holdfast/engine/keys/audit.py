"""Add an act to the record of its org."""

from __future__ import annotations

from holdfast.contract.keys import RecordAuditEntry
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import AuditEntry, record
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.keys import AuditRow, Org
from holdfast.store.protocol import LoadPlan


class RecordAudit(Operation[RecordAuditEntry, AuditRow]):
    __slots__ = ("chain",)

    def __init__(self, request: RecordAuditEntry, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan.orgs.add(self.request.org)

    def decide(self, uow: UnitOfWork) -> AuditRow:
        request = self.request
        # Also of an org that is closed: what is done there is done.
        org = uow.loaded.orgs.get(request.org, Org(slug=request.org, created_at=uow.now))
        act = AuditEntry(
            org=request.org,
            action=request.action,
            by=request.by,
            chain=self.chain,
            subject=request.subject,
            address=request.address,
            outcome=request.outcome,
            detail=request.detail,
        )
        return record(uow, org, act)
