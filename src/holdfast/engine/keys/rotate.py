"""Give a key another secret. The present one counts a while longer, so that nobody is locked out meanwhile."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import KeyInfo, RotateKey, view_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import AuditEntry, check_actor, known_key, open_org, plan_actor, put_key, record
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import KeyEnded
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Rotate(Operation[RotateKey, KeyInfo]):
    __slots__ = ("chain", "hint", "key_hash")

    def __init__(self, request: RotateKey, key_hash: str, hint: str, chain: bytes) -> None:
        super().__init__(request)
        self.key_hash = key_hash
        self.hint = hint
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)
        plan.keys.add(self.request.key_id)

    def decide(self, uow: UnitOfWork) -> KeyInfo:
        request = self.request
        key = known_key(uow, request.org, request.key_id)
        check_actor(uow, request.by, request.org, key.role)
        org = open_org(uow, request.org)
        if not key.is_valid_at(uow.now):
            how = "was revoked" if key.revoked_at is not None else "has expired"
            raise KeyEnded(f"API key {key.id} {how}: make a new one", key_id=key.id)
        overlap = int(request.overlap_s * MICRO)
        key = structs.replace(
            key,
            hash=self.key_hash,
            hint=self.hint,
            rotated_at=uow.now,
            old_hash=key.hash if overlap else None,
            old_until_at=uow.now + overlap if overlap else None,
        )
        put_key(uow, key)
        act = AuditEntry(
            org=key.org,
            action="keys.rotate",
            by=request.by,
            chain=self.chain,
            subject=key.id,
            address=request.address,
            detail=f"{key.role.value} {key.name}",
        )
        record(uow, org, act)
        return view_of(key, uow.now)
