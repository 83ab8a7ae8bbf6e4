"""End a key, now and for good."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import KeyInfo, RevokeKey, view_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import AuditEntry, check_actor, known_key, known_org, plan_actor, put_key, record
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.store.protocol import LoadPlan


class Revoke(Operation[RevokeKey, KeyInfo]):
    __slots__ = ("chain",)

    def __init__(self, request: RevokeKey, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)
        plan.keys.add(self.request.key_id)

    def decide(self, uow: UnitOfWork) -> KeyInfo:
        request = self.request
        key = known_key(uow, request.org, request.key_id)
        check_actor(uow, request.by, request.org, key.role)
        if key.revoked_at is None:
            key = structs.replace(key, revoked_at=uow.now, old_hash=None, old_until_at=None)
            put_key(uow, key)
            act = AuditEntry(
                org=key.org,
                action="keys.revoke",
                by=request.by,
                chain=self.chain,
                subject=key.id,
                address=request.address,
                detail=f"{key.role.value} {key.name}",
            )
            record(uow, known_org(uow, key.org), act)
        return view_of(key, uow.now)
