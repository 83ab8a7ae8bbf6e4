"""Make a key. Its text was made outside; only the hash comes here."""

from __future__ import annotations

from holdfast.contract.keys import CreateKey, KeyInfo, view_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import AuditEntry, check_actor, open_org, plan_actor, put_key, record
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.model.ids import execution_id
from holdfast.model.keys import ApiKey
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Create(Operation[CreateKey, KeyInfo]):
    __slots__ = ("chain", "hint", "key_hash")

    def __init__(self, request: CreateKey, key_hash: str, hint: str, chain: bytes) -> None:
        super().__init__(request)
        self.key_hash = key_hash
        self.hint = hint
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)

    def decide(self, uow: UnitOfWork) -> KeyInfo:
        request = self.request
        check_actor(uow, request.by, request.org, request.role)
        org = open_org(uow, request.org)
        key = ApiKey(
            id=execution_id(uow.now, len(uow.changes.keys), uow.entropy()),
            org=request.org,
            name=request.name,
            role=request.role,
            hash=self.key_hash,
            hint=self.hint,
            created_at=uow.now,
            created_by=request.by.key_id if request.by is not None else None,
            expires_at=None if request.expires_in_s is None else uow.now + int(request.expires_in_s * MICRO),
        )
        put_key(uow, key)
        act = AuditEntry(
            org=request.org,
            action="keys.create",
            by=request.by,
            chain=self.chain,
            subject=key.id,
            address=request.address,
            detail=f"{request.role.value} {request.name}",
        )
        record(uow, org, act)
        return view_of(key, uow.now)
