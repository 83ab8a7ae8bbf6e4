"""Who may make, renew and end keys, and how every such act is recorded.

Nobody gives more than he has, in his org or in another. Every act is a row of the org's record, numbered without gaps;
its digest, made with the installation's secret, covers the row and the digest before it. So a row that is changed,
removed or added by somebody who has only the database does not fit.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import structs

from holdfast.contract.keys import Principal
from holdfast.engine.rules.unit_of_work import UnitOfWork
from holdfast.errors import Forbidden, KeyNotFound, OrgClosed, OrgNotFound, Unauthenticated
from holdfast.model.api_key_text import redact_keys
from holdfast.model.keys import ApiKey, AuditRow, Org, Role
from holdfast.store.protocol import LoadPlan

OPERATOR: Final = "operator"
"""Who acts without a key: whoever has the database itself, or works on his own machine."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be recorded. `chain` is what digests are made with."""

    org: str
    action: str
    by: Principal | None
    chain: bytes
    subject: str = ""
    address: str = ""
    outcome: str = "done"
    detail: str = ""


def plan_actor(plan: LoadPlan, org: str, by: Principal | None) -> None:
    """What has to be known of the org, and of whoever acts in it."""
    plan.orgs.add(org)
    if by is not None and by.key_id is not None:
        plan.keys.add(by.key_id)


def check_actor(uow: UnitOfWork, by: Principal | None, org: str, role: Role) -> None:
    """Whether `by` may do what needs `role` in this org. The key is looked at once more: it may have ended since the
    door let it in."""
    if by is None:
        return
    if by.org != org:
        raise Forbidden(f"this key belongs to another org than {org!r}", org=org)
    if by.key_id is not None:
        key = uow.loaded.keys.get(by.key_id)
        if key is None or key.org != by.org or not key.is_valid_at(uow.now):
            raise Unauthenticated
        by = structs.replace(by, role=key.role)
    if not by.role.allows(role):
        raise Forbidden(
            f"a key with the role {by.role.value!r} can't give or take the rights of {role.value!r}",
            role=by.role.value,
            needed=role.value,
        )


def check_operator(by: Principal | None, what: str) -> None:
    """For what belongs to no org: no key is enough."""
    if by is not None and by.key_id is not None:
        raise Forbidden(f"{what} is done on the database itself: no key may", role=by.role.value)


def open_org(uow: UnitOfWork, slug: str) -> Org:
    """The org, made if there is none. Raises OrgClosed."""
    found = uow.loaded.orgs.get(slug)
    if found is None:
        # Nothing is written before the first act is recorded, which every change of an org is.
        return Org(slug=slug, created_at=uow.now)
    if found.closed_at is not None:
        raise OrgClosed(f"org {slug!r} was closed, and its name is not given again", org=slug)
    return found


def known_org(uow: UnitOfWork, slug: str) -> Org:
    found = uow.loaded.orgs.get(slug)
    if found is None:
        raise OrgNotFound(f"there is no org {slug!r}", org=slug)
    return found


def known_key(uow: UnitOfWork, org: str, key_id: str) -> ApiKey:
    found = uow.loaded.keys.get(key_id)
    if found is None or found.org != org:
        raise no_key(org, key_id)
    return found


def no_key(org: str, key_id: str) -> KeyNotFound:
    return KeyNotFound(f"no API key {key_id!r} in org {org!r}: check the id", key_id=key_id)


def put_org(uow: UnitOfWork, org: Org) -> None:
    if org.slug not in uow.loaded.orgs:
        uow.changes.new_orgs.add(org.slug)
    uow.loaded.orgs[org.slug] = uow.changes.orgs[org.slug] = org


def put_key(uow: UnitOfWork, key: ApiKey) -> None:
    uow.loaded.keys[key.id] = uow.changes.keys[key.id] = key


def record(uow: UnitOfWork, org: Org, act: AuditEntry) -> AuditRow:
    """Add to the record; the org is written with it."""
    actor = OPERATOR if act.by is None or act.by.key_id is None else act.by.key_id
    row = AuditRow(
        org=org.slug,
        seq=org.audit_seq + 1,
        at=uow.now,
        actor=actor,
        action=act.action,
        # People write all sorts of things into names and reasons: a key that got there is not kept.
        subject=redact_keys(act.subject),
        address=redact_keys(act.address),
        outcome=act.outcome,
        detail=redact_keys(act.detail),
    )
    row = structs.replace(row, digest=digest_of(act.chain, org.audit_digest, row))
    put_org(uow, structs.replace(org, audit_seq=row.seq, audit_digest=row.digest))
    uow.changes.audit.append(row)
    return row


def digest_of(chain: bytes, before: str, row: AuditRow) -> str:
    content = msgspec.json.encode((before, structs.astuple(structs.replace(row, digest=""))))
    return hmac.new(chain, content, "sha256").hexdigest()


class Verification:
    """Checks a record, given from its end to its beginning. `first_bad` is the lowest number that does not fit."""

    def __init__(self, chain: bytes, org: Org) -> None:
        self._chain = chain
        self._org = org
        self._above: AuditRow | None = None
        self._expected = org.audit_seq
        self.first_bad: int | None = None

    def check_row(self, rows: Iterable[AuditRow]) -> None:
        for row in rows:
            if row.seq != self._expected:
                self.first_bad = row.seq + 1
                self._above = None
            elif self._above is None and row.seq == self._org.audit_seq and row.digest != self._org.audit_digest:
                self.first_bad = row.seq
            self._check_above(row.digest)
            self._above, self._expected = row, row.seq - 1

    def finish(self) -> int | None:
        if self._expected > 0:
            self.first_bad = 1
        else:
            self._check_above("")
        return self.first_bad

    def _check_above(self, before: str) -> None:
        above = self._above
        if above is not None and digest_of(self._chain, before, above) != above.digest:
            self.first_bad = above.seq
