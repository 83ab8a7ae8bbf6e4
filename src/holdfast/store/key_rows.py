"""Records of orgs, keys and acts as rows of a table, the same in every store."""

from __future__ import annotations

from typing import Final

from holdfast.model.keys import ApiKey, AuditRow, Org, Role
from holdfast.store.rows import Row

_ORG_WIDTH: Final = 5


def org_to_row(org: Org) -> Row:
    return (org.slug, org.created_at, org.closed_at, org.audit_seq, org.audit_digest)


def row_to_org(row: Row) -> Org:
    return Org(slug=row[0], created_at=row[1], closed_at=row[2], audit_seq=row[3], audit_digest=row[4])


def key_to_row(key: ApiKey) -> Row:
    return (
        key.id,
        key.org,
        key.name,
        key.role.value,
        key.hash,
        key.hint,
        key.created_at,
        key.created_by,
        key.expires_at,
        key.revoked_at,
        key.last_used_at,
        key.rotated_at,
        key.old_hash,
        key.old_until_at,
    )


def row_to_key(row: Row) -> ApiKey:
    return ApiKey(
        id=row[0],
        org=row[1],
        name=row[2],
        role=Role(row[3]),
        hash=row[4],
        hint=row[5],
        created_at=row[6],
        created_by=row[7],
        expires_at=row[8],
        revoked_at=row[9],
        last_used_at=row[10],
        rotated_at=row[11],
        old_hash=row[12],
        old_until_at=row[13],
    )


def row_to_key_and_org(row: Row) -> tuple[ApiKey, Org]:
    """A row of both tables: first the org, then the key."""
    return row_to_key(row[_ORG_WIDTH:]), row_to_org(row[:_ORG_WIDTH])


def audit_to_row(act: AuditRow) -> Row:
    return (
        act.org,
        act.seq,
        act.at,
        act.actor,
        act.action,
        act.subject,
        act.address,
        act.outcome,
        act.detail,
        act.digest,
    )


def row_to_audit(row: Row) -> AuditRow:
    return AuditRow(
        org=row[0],
        seq=row[1],
        at=row[2],
        actor=row[3],
        action=row[4],
        subject=row[5],
        address=row[6],
        outcome=row[7],
        detail=row[8],
        digest=row[9],
    )
