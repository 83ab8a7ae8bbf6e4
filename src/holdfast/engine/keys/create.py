"""Make a key. Its text was made outside; only the hash comes here."""

from __future__ import annotations

from holdfast.contract.keys import CreateKey, KeyView, view_of
from holdfast.engine.keys.audited import KeyOperation
from holdfast.engine.rules.keys import check_actor, open_org, plan_actor, put_key
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.ids import execution_id
from holdfast.model.keys import ApiKey
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan


class Create(KeyOperation[CreateKey, KeyView]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.org, self.request.by)

    def decide(self, ws: Workspace) -> KeyView:
        request = self.request
        check_actor(ws, request.by, request.org, request.role)
        org = open_org(ws, request.org)
        key = ApiKey(
            id=execution_id(ws.now, len(ws.changes.keys), ws.entropy()),
            org=request.org,
            name=request.name,
            role=request.role,
            hash=self.key_hash,
            hint=self.hint,
            created_at=ws.now,
            created_by=request.by.key_id if request.by is not None else None,
            expires_at=None if request.expires_in_s is None else ws.now + int(request.expires_in_s * MICRO),
        )
        put_key(ws, key)
        self.record(ws, org, "keys.create", subject=key.id, detail=f"{request.role.value} {request.name}")
        return view_of(key, ws.now)
