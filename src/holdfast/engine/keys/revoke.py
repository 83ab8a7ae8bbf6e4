"""End a key, now and for good."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import KeyView, RevokeKey, view_of
from holdfast.engine.keys.audited import AuditedOperation
from holdfast.engine.rules.keys import check_actor, known_key, known_org, plan_actor, put_key
from holdfast.engine.rules.workspace import Workspace
from holdfast.store.protocol import LoadPlan


class Revoke(AuditedOperation[RevokeKey, KeyView]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)
        plan.keys.add(self.request.key_id)

    def decide(self, ws: Workspace) -> KeyView:
        request = self.request
        key = known_key(ws, request.org, request.key_id)
        check_actor(ws, request.by, request.org, key.role)
        if key.revoked_at is None:
            key = structs.replace(key, revoked_at=ws.now, old_hash=None, old_until_at=None)
            put_key(ws, key)
            self.record(
                ws, known_org(ws, key.org), "keys.revoke", subject=key.id, detail=f"{key.role.value} {key.name}"
            )
        return view_of(key, ws.now)
