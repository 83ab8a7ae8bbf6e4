"""Make an org, or close it: then none of its keys counts any more. One that is deleted loses its rows, too."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import CloseOrg, CreateOrg, DeleteOrg
from holdfast.engine.keys.audited import AuditedOperation
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import (
    Act,
    check_actor,
    check_operator,
    known_org,
    open_org,
    plan_actor,
    put_org,
    record,
)
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import Forbidden
from holdfast.model.keys import Org, Role
from holdfast.store.protocol import LoadPlan


class Make(AuditedOperation[CreateOrg, Org]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, ws: Workspace) -> Org:
        request = self.request
        check_operator(request.by, "making an org")
        org = open_org(ws, request.slug)
        if request.slug not in ws.loaded.orgs:
            self.record(ws, org, "orgs.create")
        return ws.loaded.orgs[request.slug]


class Close(AuditedOperation[CloseOrg, Org]):
    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, ws: Workspace) -> Org:
        request = self.request
        check_operator(request.by, "closing an org")
        org = known_org(ws, request.slug)
        if org.closed_at is None:
            org = structs.replace(org, closed_at=ws.now)
            put_org(ws, org)
            self.record(ws, org, "orgs.close")
        return ws.loaded.orgs[request.slug]


class Delete(AuditedOperation[DeleteOrg, Org]):
    """The rows are removed afterwards: see engine/deleting.py."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, ws: Workspace) -> Org:
        request = self.request
        if request.by is not None and request.by.key_id is None:
            raise Forbidden("an org is deleted with one of its admin keys, or on the database itself")
        check_actor(ws, request.by, request.slug, Role.ADMIN)
        org = ws.loaded.orgs.get(request.slug, Org(slug=request.slug, created_at=ws.now))
        org = structs.replace(org, closed_at=org.closed_at if org.closed_at is not None else ws.now)
        self.record(ws, org, "orgs.delete")
        ws.changes.deletions[org.slug] = ws.now
        return ws.loaded.orgs[request.slug]


class Purge(Operation[tuple[str, int], None]):
    """Remove a page of an org's rows. The request is its name, and about how many."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        """Nothing is loaded: what the org has is gone, whatever it is."""

    def decide(self, ws: Workspace) -> None:
        org, page = self.request
        ws.changes.purged_orgs[org] = page


class Finish(Operation[str, None]):
    """Nothing of the org is left."""

    __slots__ = ("chain",)

    def __init__(self, request: str, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan.orgs.add(self.request)

    def decide(self, ws: Workspace) -> None:
        ws.changes.finished_deletions.append(self.request)
        act = Act(org=self.request, action="orgs.deleted", by=None, chain=self.chain)
        record(ws, known_org(ws, self.request), act)
