"""Make an org, or close it: then none of its keys counts any more."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import CloseOrg, CreateOrg
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import Act, check_operator, known_org, open_org, plan_actor, put_org, record
from holdfast.engine.rules.workspace import Workspace
from holdfast.model.keys import Org
from holdfast.store.protocol import LoadPlan


class Make(Operation[CreateOrg, Org]):
    __slots__ = ("chain",)

    def __init__(self, request: CreateOrg, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, ws: Workspace) -> Org:
        request = self.request
        check_operator(request.by, "making an org")
        org = open_org(ws, request.slug)
        if request.slug not in ws.loaded.orgs:
            act = Act(org=request.slug, action="orgs.create", by=request.by, chain=self.chain, address=request.address)
            record(ws, org, act)
        return ws.loaded.orgs[request.slug]


class Close(Operation[CloseOrg, Org]):
    __slots__ = ("chain",)

    def __init__(self, request: CloseOrg, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, ws: Workspace) -> Org:
        request = self.request
        check_operator(request.by, "closing an org")
        org = known_org(ws, request.slug)
        if org.closed_at is None:
            org = structs.replace(org, closed_at=ws.now)
            put_org(ws, org)
            act = Act(org=org.slug, action="orgs.close", by=request.by, chain=self.chain, address=request.address)
            record(ws, org, act)
        return ws.loaded.orgs[request.slug]
