"""Make a key. Its text was made outside; only the hash comes here."""

from __future__ import annotations

from holdfast.contract.keys import CreateKey, KeyView, view_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, check_actor, open_org, plan_actor, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.ids import execution_id
from holdfast.model.keys import ApiKey
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Create(Operation[CreateKey, KeyView]):
    __slots__ = ("chain", "hint", "key_hash")

    def __init__(self, request: CreateKey, key_hash: str, hint: str, chain: bytes) -> None:
        super().__init__(request)
        self.key_hash = key_hash
        self.hint = hint
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)

    def decide(self, ws: Workspace) -> KeyView:
        request = self.request
        check_actor(ws, request.by, request.org, request.role)
        org = open_org(ws, request.org)
        key = ApiKey(
            id=execution_id(ws.now, len(ws.changes.rows.get(ApiKey, ())), ws.entropy()),
            org=request.org,
            name=request.name,
            role=request.role,
            hash=self.key_hash,
            hint=self.hint,
            created_at=ws.now,
            created_by=request.by.key_id if request.by is not None else None,
            expires_at=None if request.expires_in_s is None else ws.now + int(request.expires_in_s * MICRO),
        )
        ws.put(key)
        act = Act(
            org=request.org,
            action="keys.create",
            by=request.by,
            chain=self.chain,
            subject=key.id,
            address=request.address,
            detail=f"{request.role.value} {request.name}",
        )
        record(ws, org, act)
        return view_of(key, ws.now)
