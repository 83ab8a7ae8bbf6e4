"""API keys, orgs and the record of acts: who may come in, and what was done.

Requests say who asks in `by`; None is whoever has the database itself (the command line on a database), and may do
everything. They also say from where (`address`), for the record.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import StrEnum
from typing import Protocol

import msgspec

from holdfast.model.keys import ApiKey, AuditRow, Org, Role


class Principal(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Who asks. `key_id` is None in development without keys; `key_hash` is for asking again whether the key still
    counts."""

    org: str
    role: Role
    key_id: str | None = None
    key_hash: str | None = None

    def __repr__(self) -> str:
        return f"Principal({self.org!r}, {self.role.value!r}, {self.key_id!r})"


class KeyState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A key as people see it: nothing to log in with. `old_until_at`: until then the secret before the last rotation
    counts, too."""

    id: str
    org: str
    name: str
    role: Role
    state: KeyState
    hint: str
    created_at: int
    created_by: str | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    rotated_at: int | None = None
    old_until_at: int | None = None


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key with its text, which nobody can show again."""

    key: KeyInfo
    text: str

    def __repr__(self) -> str:
        return f"CreatedKey(key={self.key!r}, text='hf_***')"


class CreateKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key. Its org is made if there is none, if whoever asks may do that."""

    org: str
    name: str
    role: Role
    expires_in_s: float | None = None
    by: Principal | None = None
    address: str = ""


class RevokeKey(msgspec.Struct, frozen=True, kw_only=True):
    org: str
    key_id: str
    by: Principal | None = None
    address: str = ""


class RotateKey(msgspec.Struct, frozen=True, kw_only=True):
    """Another secret for the same key. The present one counts for `overlap_s` more; one that was replaced before it
    ends at once."""

    org: str
    key_id: str
    overlap_s: float = 24 * 3600.0
    by: Principal | None = None
    address: str = ""


class CreateOrg(msgspec.Struct, frozen=True, kw_only=True):
    slug: str
    by: Principal | None = None
    address: str = ""


class CloseOrg(msgspec.Struct, frozen=True, kw_only=True):
    """End all keys of an org, for good."""

    slug: str
    by: Principal | None = None
    address: str = ""


class DeleteOrg(msgspec.Struct, frozen=True, kw_only=True):
    """End all keys of an org at once, and remove everything it has. `confirm` is its name once more."""

    slug: str
    confirm: str
    by: Principal | None = None
    address: str = ""


class RecordAuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something was done, or is about to be, that the org's record should know."""

    org: str
    action: str
    subject: str = ""
    outcome: str = "done"
    detail: str = ""
    by: Principal | None = None
    address: str = ""


class AuditCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an org's record is as it was written. `first_bad` is the number of the first row that is missing or was
    changed."""

    rows: int
    first_bad: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.first_bad is None


class Keys(Protocol):
    def create(self, request: CreateKey) -> Awaitable[CreatedKey]:
        """Raises Forbidden for more rights than one's own or another org, OrgClosed."""
        ...

    def get(self, org: str, key_id: str) -> Awaitable[KeyInfo]:
        """Raises KeyNotFound."""
        ...

    def revoke(self, request: RevokeKey) -> Awaitable[KeyInfo]:
        """Ends a key; one that has ended stays as it is. Raises KeyNotFound, Forbidden."""
        ...

    def rotate(self, request: RotateKey) -> Awaitable[CreatedKey]:
        """Raises KeyNotFound, KeyEnded, Forbidden."""
        ...

    def authenticate(self, key_hash: str) -> Awaitable[Principal]:
        """Whose key this is (`model.key_text.hash_key`). Answers may be half a second old. Raises Unauthenticated,
        always the same one."""
        ...

    def any(self) -> Awaitable[bool]:
        """Whether a key was ever made, in any org."""
        ...

    def create_org(self, request: CreateOrg) -> Awaitable[Org]:
        """One that is there already is the answer, too. Raises Forbidden for every key, OrgClosed."""
        ...

    def close_org(self, request: CloseOrg) -> Awaitable[Org]:
        """Raises Forbidden for every key, OrgNotFound."""
        ...

    def delete_org(self, request: DeleteOrg) -> Awaitable[Org]:
        """Its keys are dead at once; its rows are removed in the background, in pages, also after a restart. What stays
        is its name, which is not given again, and the record of acts. Raises Forbidden unless an admin of the org, or
        the operator, asks."""
        ...

    def orgs(self, after: str = "", limit: int = 100) -> Awaitable[list[Org]]:
        """In the order of their slugs, after one."""
        ...

    def record(self, request: RecordAuditEntry) -> Awaitable[AuditRow]:
        """Add to the org's record. Nothing is ever removed from it."""
        ...

    def audit(self, org: str, before: int | None = None, limit: int = 100) -> Awaitable[list[AuditRow]]:
        """The newest first, with numbers below `before`."""
        ...

    def verify_audit(self, org: str) -> Awaitable[AuditCheck]: ...

    def list(self, org: str, before: str | None = None, limit: int = 100) -> Awaitable[tuple[KeyInfo, ...]]:
        """The newest first, with ids below `before`; also those that have ended."""
        ...


def view_of(key: ApiKey, now: int) -> KeyInfo:
    if key.revoked_at is not None:
        state = KeyState.REVOKED
    else:
        state = KeyState.ACTIVE if key.is_valid_at(now) else KeyState.EXPIRED
    overlap = key.old_until_at if key.old_until_at is not None and now < key.old_until_at else None
    return KeyInfo(
        id=key.id,
        org=key.org,
        name=key.name,
        role=key.role,
        state=state,
        hint=key.hint,
        created_at=key.created_at,
        created_by=key.created_by,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
        rotated_at=key.rotated_at,
        old_until_at=overlap if state is KeyState.ACTIVE else None,
    )
