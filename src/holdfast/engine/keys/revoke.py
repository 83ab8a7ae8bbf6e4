"""End a key, now and for good."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import KeyView, RevokeKey, view_of
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, check_actor, known_key, known_org, plan_actor, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.keys import ApiKey
from holdfast.store.protocol import LoadPlan


class Revoke(Operation[RevokeKey, KeyView]):
    __slots__ = ("chain",)

    def __init__(self, request: RevokeKey, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)
        plan.want(ApiKey, self.request.key_id)

    def decide(self, ws: Workspace) -> KeyView:
        request = self.request
        key = known_key(ws, request.org, request.key_id)
        check_actor(ws, request.by, request.org, key.role)
        if key.revoked_at is None:
            key = structs.replace(key, revoked_at=ws.now, old_hash=None, old_until_at=None)
            ws.put(key)
            act = Act(
                org=key.org,
                action="keys.revoke",
                by=request.by,
                chain=self.chain,
                subject=key.id,
                address=request.address,
                detail=f"{key.role.value} {key.name}",
            )
            record(ws, known_org(ws, key.org), act)
        return view_of(key, ws.now)
