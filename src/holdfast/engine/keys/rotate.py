"""Give a key another secret. The present one counts a while longer, so that nobody is locked out meanwhile."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import KeyView, RotateKey, view_of
from holdfast.engine.keys.audited import KeyOperation
from holdfast.engine.rules.keys import check_actor, known_key, open_org, plan_actor, put_key
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import KeyEnded
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Rotate(KeyOperation[RotateKey, KeyView]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)
        plan.keys.add(self.request.key_id)

    def decide(self, ws: Workspace) -> KeyView:
        request = self.request
        key = known_key(ws, request.org, request.key_id)
        check_actor(ws, request.by, request.org, key.role)
        org = open_org(ws, request.org)
        if not key.counts(ws.now):
            how = "was revoked" if key.revoked_at is not None else "has expired"
            raise KeyEnded(f"API key {key.id} {how}: make a new one", key_id=key.id)
        overlap = int(request.overlap_s * MICRO)
        key = structs.replace(
            key,
            hash=self.key_hash,
            hint=self.hint,
            rotated_at=ws.now,
            old_hash=key.hash if overlap else None,
            old_until_at=ws.now + overlap if overlap else None,
        )
        put_key(ws, key)
        self.record(ws, org, "keys.rotate", subject=key.id, detail=f"{key.role.value} {key.name}")
        return view_of(key, ws.now)
