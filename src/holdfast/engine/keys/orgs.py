"""Make an org, or close it: then none of its keys counts any more. One that is deleted loses its rows, too."""

from __future__ import annotations

from msgspec import structs

from holdfast.contract.keys import CloseOrg, CreateOrg, DeleteOrg
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import (
    AuditEntry,
    check_actor,
    check_operator,
    known_org,
    open_org,
    plan_actor,
    put_org,
    record,
)
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import Forbidden
from holdfast.model.keys import Org, Role
from holdfast.store.protocol import LoadPlan


class AddOrg(Operation[CreateOrg, Org]):
    __slots__ = ("chain",)

    def __init__(self, request: CreateOrg, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, uow: UnitOfWork) -> Org:
        request = self.request
        check_operator(request.by, "making an org")
        org = open_org(uow, request.slug)
        if request.slug not in uow.loaded.orgs:
            act = AuditEntry(
                org=request.slug, action="orgs.create", by=request.by, chain=self.chain, address=request.address
            )
            record(uow, org, act)
        return uow.loaded.orgs[request.slug]


class Close(Operation[CloseOrg, Org]):
    __slots__ = ("chain",)

    def __init__(self, request: CloseOrg, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, uow: UnitOfWork) -> Org:
        request = self.request
        check_operator(request.by, "closing an org")
        org = known_org(uow, request.slug)
        if org.closed_at is None:
            org = structs.replace(org, closed_at=uow.now)
            put_org(uow, org)
            act = AuditEntry(
                org=org.slug, action="orgs.close", by=request.by, chain=self.chain, address=request.address
            )
            record(uow, org, act)
        return uow.loaded.orgs[request.slug]


class Delete(Operation[DeleteOrg, Org]):
    """The rows are removed afterwards: see engine/org_deletion.py."""

    __slots__ = ("chain",)

    def __init__(self, request: DeleteOrg, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan_actor(plan, self.request.slug, self.request.by)

    def decide(self, uow: UnitOfWork) -> Org:
        request = self.request
        if request.by is not None and request.by.key_id is None:
            raise Forbidden("an org is deleted with one of its admin keys, or on the database itself")
        check_actor(uow, request.by, request.slug, Role.ADMIN)
        org = uow.loaded.orgs.get(request.slug, Org(slug=request.slug, created_at=uow.now))
        org = structs.replace(org, closed_at=org.closed_at if org.closed_at is not None else uow.now)
        act = AuditEntry(org=org.slug, action="orgs.delete", by=request.by, chain=self.chain, address=request.address)
        record(uow, org, act)
        uow.changes.deletions[org.slug] = uow.now
        return uow.loaded.orgs[request.slug]


class Purge(Operation[tuple[str, int], None]):
    """Remove a page of an org's rows. The request is its name, and about how many."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        """Nothing is loaded: what the org has is gone, whatever it is."""

    def decide(self, uow: UnitOfWork) -> None:
        org, page = self.request
        uow.changes.purged_orgs[org] = page


class Finish(Operation[str, None]):
    """Nothing of the org is left."""

    __slots__ = ("chain",)

    def __init__(self, request: str, chain: bytes) -> None:
        super().__init__(request)
        self.chain = chain

    def plan(self, plan: LoadPlan) -> None:
        plan.orgs.add(self.request)

    def decide(self, uow: UnitOfWork) -> None:
        uow.changes.finished_deletions.append(self.request)
        act = AuditEntry(org=self.request, action="orgs.deleted", by=None, chain=self.chain)
        record(uow, known_org(uow, self.request), act)
