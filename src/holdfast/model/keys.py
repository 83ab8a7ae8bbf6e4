"""Orgs, their API keys, and the record of what was done with them."""

from __future__ import annotations

import hmac
from enum import StrEnum

import msgspec


class Role(StrEnum):
    """What a key is for. An admin may do everything in its org, a writer what a reader may and more; a worker runs
    workflows and tasks, and nothing else."""

    ADMIN = "admin"
    WRITER = "writer"
    READER = "reader"
    WORKER = "worker"

    def allows(self, other: Role) -> bool:
        """Whether this role may do whatever `other` may."""
        return other in _INCLUDED[self]


_INCLUDED = {
    Role.ADMIN: frozenset(Role),
    Role.WRITER: frozenset({Role.WRITER, Role.READER}),
    Role.READER: frozenset({Role.READER}),
    Role.WORKER: frozenset({Role.WORKER}),
}


class Org(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant that has keys. One without keys needs no record. `audit_seq` and `audit_digest` are the end of its
    record of acts. Once closed, its keys count no more."""

    slug: str
    created_at: int
    closed_at: int | None = None
    audit_seq: int = 0
    audit_digest: str = ""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is stored: what it is compared with, never what it is. `hint` is its beginning, for people who have
    several. After a rotation `old_hash` counts, too, until `old_until_at`. `created_by` is the id of another key, None
    for whoever has the database itself. `last_used_at` is coarse."""

    id: str
    org: str
    name: str
    role: Role
    hash: str
    hint: str
    created_at: int
    created_by: str | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    rotated_at: int | None = None
    old_hash: str | None = None
    old_until_at: int | None = None

    def is_valid_at(self, now: int) -> bool:
        """Whether the key may be used at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def matches(self, key_hash: str, now: int) -> bool:
        """Whether this hash, which has found the key, is that of its secret at this time."""
        if not self.is_valid_at(now):
            return False
        given = key_hash.encode()
        is_current = hmac.compare_digest(given, self.hash.encode())
        is_old = hmac.compare_digest(given, (self.old_hash or "").encode())
        return is_current or (is_old and self.old_until_at is not None and now < self.old_until_at)


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One act: who (`actor` is a key's id, or `operator`), what, on what, from where, how it ended. Numbered without
    gaps per org; each digest covers the one before."""

    org: str
    seq: int
    at: int
    actor: str
    action: str
    subject: str = ""
    address: str = ""
    outcome: str = "done"
    detail: str = ""
    digest: str = ""
