"""What changes keys and orgs. The texts of keys are made outside: only hashes come here."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from msgspec import structs

from holdfast.contract.instants import instant, instant_or_none
from holdfast.contract.keys import (
    CloseOrg,
    CreateKey,
    CreateOrg,
    DeleteOrg,
    KeyInfo,
    KeyState,
    OrgDeleted,
    OrgInfo,
    RevokeKey,
    RotateKey,
)
from holdfast.contract.operation import AuditedRequest
from holdfast.engine.audited import AuditedOperation
from holdfast.engine.operation import Operation
from holdfast.engine.rules.keys import (
    Act,
    check_actor,
    check_operator,
    known_key,
    known_org,
    open_org,
    record,
)
from holdfast.engine.rules.workspace import Workspace
from holdfast.errors import Forbidden, KeyEnded
from holdfast.model.ids import execution_id
from holdfast.model.keys import ApiKey, AuditRow, Deletion, Org, Role
from holdfast.model.values import MICRO
from holdfast.store.protocol import LoadPlan

R = TypeVar("R", bound=AuditedRequest[Any])

USED_EVERY: Final = 300 * MICRO


# --- keys ---


class SecretOperation(AuditedOperation[R, KeyInfo]):
    """One that gives a key a secret: its hash, and the hint that people know it by."""

    __slots__ = ("hint", "key_hash")

    def __init__(self, request: R, chain: bytes, key_hash: str, hint: str) -> None:
        super().__init__(request, chain)
        self.key_hash = key_hash
        self.hint = hint


class Create(SecretOperation[CreateKey]):
    def decide(self, ws: Workspace) -> KeyInfo:
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
        self.record(ws, org, "keys.create", key.id, _detail(key))
        return key_info(key, ws.now)


class Rotate(SecretOperation[RotateKey]):
    """The present secret counts a while longer, so that nobody is locked out meanwhile."""

    def plan(self, plan: LoadPlan) -> None:
        super().plan(plan)
        plan.want(ApiKey, self.request.key_id)

    def decide(self, ws: Workspace) -> KeyInfo:
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
        ws.put(key)
        self.record(ws, org, "keys.rotate", key.id, _detail(key))
        return key_info(key, ws.now)


class Revoke(AuditedOperation[RevokeKey, KeyInfo]):
    def plan(self, plan: LoadPlan) -> None:
        super().plan(plan)
        plan.want(ApiKey, self.request.key_id)

    def decide(self, ws: Workspace) -> KeyInfo:
        request = self.request
        key = known_key(ws, request.org, request.key_id)
        check_actor(ws, request.by, request.org, key.role)
        if key.revoked_at is None:
            key = structs.replace(key, revoked_at=ws.now, old_hash=None, old_until_at=None)
            ws.put(key)
            self.record(ws, known_org(ws, key.org), "keys.revoke", key.id, _detail(key))
        return key_info(key, ws.now)


class Touch(Operation[str, None]):
    """Note that a key is in use: now and then, not at every call. The request is the key's id."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.want(ApiKey, self.request)

    def decide(self, ws: Workspace) -> None:
        key = ws.get(ApiKey, self.request)
        if key is not None and key.counts(ws.now) and is_stale(key, ws.now):
            ws.put(structs.replace(key, last_used_at=ws.now))


def is_stale(key: ApiKey, now: int) -> bool:
    return key.last_used_at is None or now - key.last_used_at >= USED_EVERY


def _detail(key: ApiKey) -> str:
    return f"{key.role.value} {key.name}"


def key_info(key: ApiKey, now: int) -> KeyInfo:
    if key.revoked_at is not None:
        state = KeyState.REVOKED
    else:
        state = KeyState.ACTIVE if key.counts(now) else KeyState.EXPIRED
    overlaps = state is KeyState.ACTIVE and key.old_until_at is not None and now < key.old_until_at
    return KeyInfo(
        id=key.id,
        name=key.name,
        role=key.role,
        state=state,
        hint=key.hint,
        created_at=instant(key.created_at),
        created_by=key.created_by,
        expires_at=instant_or_none(key.expires_at),
        revoked_at=instant_or_none(key.revoked_at),
        last_used_at=instant_or_none(key.last_used_at),
        rotated_at=instant_or_none(key.rotated_at),
        old_until=instant_or_none(key.old_until_at) if overlaps else None,
    )


# --- orgs ---


class AddOrg(AuditedOperation[CreateOrg, OrgInfo]):
    def decide(self, ws: Workspace) -> OrgInfo:
        slug = self.request.org
        check_operator(self.request.by, "making an org")
        org = open_org(ws, slug)
        if ws.get(Org, slug) is None:
            self.record(ws, org, "orgs.create")
        return org_info(known_org(ws, slug))


class Close(AuditedOperation[CloseOrg, OrgInfo]):
    """None of its keys counts any more."""

    def decide(self, ws: Workspace) -> OrgInfo:
        check_operator(self.request.by, "closing an org")
        org = known_org(ws, self.request.org)
        if org.closed_at is None:
            org = structs.replace(org, closed_at=ws.now)
            ws.put(org)
            self.record(ws, org, "orgs.close")
        return org_info(known_org(ws, org.slug))


class Delete(AuditedOperation[DeleteOrg, OrgDeleted]):
    """The rows are removed afterwards: see engine/deleting.py."""

    def decide(self, ws: Workspace) -> OrgDeleted:
        request = self.request
        if request.by is not None and request.by.key_id is None:
            raise Forbidden("an org is deleted with one of its admin keys, or on the database itself")
        check_actor(ws, request.by, request.org, Role.ADMIN)
        org = ws.get(Org, request.org) or Org(slug=request.org, created_at=ws.now)
        closed_at = org.closed_at if org.closed_at is not None else ws.now
        self.record(ws, structs.replace(org, closed_at=closed_at), "orgs.delete")
        ws.put(Deletion(org=org.slug, since_at=ws.now))
        return OrgDeleted(org=org.slug, closed_at=instant(closed_at))


class Purge(Operation[tuple[str, int], None]):
    """Remove a page of an org's rows. The request is its name, and about how many."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        """Nothing is loaded: what the org has is gone, whatever it is."""

    def decide(self, ws: Workspace) -> None:
        org, page = self.request
        ws.changes.purged_orgs[org] = page


def org_info(org: Org) -> OrgInfo:
    return OrgInfo(
        name=org.slug,
        created_at=instant(org.created_at),
        closed_at=instant_or_none(org.closed_at),
        acts=org.audit_seq,
    )


# --- the audit log ---


class RecordAct(Operation[Act, AuditRow]):
    """Write an act into the audit log of its org."""

    __slots__ = ()

    def plan(self, plan: LoadPlan) -> None:
        plan.want(Org, self.request.org)

    def decide(self, ws: Workspace) -> AuditRow:
        # Also of an org that is closed: what is done there is done.
        org = ws.get(Org, self.request.org) or Org(slug=self.request.org, created_at=ws.now)
        return record(ws, org, self.request)


class FinishDeletion(RecordAct):
    """Nothing of the org is left."""

    __slots__ = ()

    def decide(self, ws: Workspace) -> AuditRow:
        ws.drop(Deletion, self.request.org)
        return super().decide(ws)
