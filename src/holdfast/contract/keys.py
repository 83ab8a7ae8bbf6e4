"""API keys, orgs and the audit log: who may come in, and what was done.

Orgs are made, closed and listed by whoever has the database itself: no key is enough for that, so these three are no
rows of the table.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Protocol

from msgspec import Meta

from holdfast.config import Limits
from holdfast.contract.fields import Check, Limit, Name, Number, Seconds, check_duration
from holdfast.contract.operation import (
    DELETE,
    GET,
    ORG,
    POST,
    AuditedRequest,
    Record,
    Request,
    operation,
    public_names,
)
from holdfast.contract.principals import Principal
from holdfast.errors import InvalidRequest
from holdfast.model.keys import Role

DAY_S: Final = 24 * 3600.0
KEYS: Final = f"{ORG}/keys"
KEY: Final = f"{KEYS}/{{key_id}}"
_TAG: Final = "keys"
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,62}")


def _check_slug(value: Any, field: str, _: Limits) -> None:
    """An org's name is a part of addresses."""
    if not isinstance(value, str) or _SLUG.fullmatch(value) is None:
        raise InvalidRequest(
            f"{field} must have 1 to 63 letters, digits, or . _ ~ - and begin with a letter or digit", field=field
        )


def _check_role(value: Any, field: str, _: Limits) -> None:
    if not isinstance(value, Role):
        raise InvalidRequest(f"{field} must be one of {', '.join(Role)}, not {value!r:.50}", field=field)


def _check_overlap(value: Any, field: str, limits: Limits) -> None:
    if value:
        check_duration(value, field, limits)


Slug = Annotated[str, Check(_check_slug)]
RoleName = Annotated[Role, Check(_check_role)]
Overlap = Annotated[float, Meta(extra_json_schema={"minimum": 0}), Check(_check_overlap)]


class KeyState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class KeyInfo(Record, frozen=True, kw_only=True, rename=public_names(id="key_id")):
    """A key as people see it: nothing to log in with. `created_by` is the id of another key, None for the operator.
    `old_until`: until then the secret before the last rotation counts, too. `last_used_at` is coarse."""

    id: str
    name: str
    role: Role
    state: KeyState
    hint: str
    created_at: datetime
    created_by: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    rotated_at: datetime | None = None
    old_until: datetime | None = None


class CreatedKey(Record, frozen=True, kw_only=True):
    """A key with its text, which nobody can show again."""

    key: KeyInfo
    text: str

    def __repr__(self) -> str:
        return f"CreatedKey(key={self.key!r}, text='hf_***')"


class KeyList(Record, frozen=True, kw_only=True):
    """The newest first; also those that have ended."""

    keys: tuple[KeyInfo, ...]


class OrgInfo(Record, frozen=True, kw_only=True, rename=public_names(name="org")):
    """An org that has, or had, keys or an audit log of `acts` entries. Once closed, its keys count no more."""

    name: str
    created_at: datetime
    closed_at: datetime | None = None
    acts: int = 0


class OrgList(Record, frozen=True, kw_only=True):
    """By their names."""

    orgs: tuple[OrgInfo, ...]


class OrgDeleted(Record, frozen=True, kw_only=True):
    """Its keys are dead; its rows are being removed."""

    org: str
    closed_at: datetime


class AuditEntry(Record, frozen=True, kw_only=True, rename=public_names(seq="sequence")):
    """One act: who (`actor` is a key's id, or `operator`), what, on what, from where, how it ended. Numbered without
    gaps; each digest covers the one before."""

    seq: int
    at: datetime
    actor: str
    action: str
    subject: str = ""
    address: str = ""
    outcome: str = "done"
    detail: str = ""
    digest: str = ""


class AuditList(Record, frozen=True, kw_only=True):
    """The newest first."""

    acts: tuple[AuditEntry, ...]


class AuditCheck(Record, frozen=True, kw_only=True, rename=public_names(is_whole="whole")):
    """Whether an org's audit log is as it was written. `first_bad` is the number of the first row that is missing or
    was changed."""

    rows: int
    is_whole: bool
    first_bad: int | None = None


@operation(
    "create_key",
    POST,
    KEYS,
    Role.ADMIN,
    tag=_TAG,
    status=201,
    # Not sent twice: a second key that nobody has seen would be left behind.
    repeatable=False,
    example={"name": "shop", "role": "writer", "expires_in_seconds": 7776000},
)
class CreateKey(AuditedRequest[CreatedKey], frozen=True, kw_only=True):
    """Make an API key; its text is shown once.

    Without `expires_in_s` the key counts until it is revoked. Its org is made if there is none and the operator asks.
    Raises Forbidden for more rights than one's own or another org, OrgClosed.
    """

    org: Slug
    name: Name
    role: RoleName
    expires_in_s: Seconds | None = None


@operation("list_keys", GET, KEYS, Role.ADMIN, tag=_TAG)
class ListKeys(Request[KeyList], frozen=True, kw_only=True):
    """The org's API keys, the newest first.

    The next page is `before` the last one's id.
    """

    org: Name
    before: Name | None = None
    limit: Limit = 100


@operation("get_key", GET, KEY, Role.ADMIN, tag=_TAG)
class GetKey(Request[KeyInfo], frozen=True, kw_only=True):
    """One API key.

    Raises KeyNotFound.
    """

    org: Name
    key_id: Name


@operation("revoke_key", POST, f"{KEY}/revoke", Role.ADMIN, tag=_TAG)
class RevokeKey(AuditedRequest[KeyInfo], frozen=True, kw_only=True):
    """End an API key.

    One that has ended stays as it is. Raises KeyNotFound, Forbidden.
    """

    org: Name
    key_id: Name


@operation(
    "rotate_key", POST, f"{KEY}/rotate", Role.ADMIN, tag=_TAG, repeatable=False, example={"overlap_seconds": 3600}
)
class RotateKey(AuditedRequest[CreatedKey], frozen=True, kw_only=True):
    """Give an API key another secret; the present one counts a while longer.

    The present one counts for `overlap_s` more; one that was replaced before it ends at once. Raises KeyNotFound,
    KeyEnded, Forbidden.
    """

    org: Name
    key_id: Name
    overlap_s: Overlap = DAY_S


@operation("delete_org", DELETE, ORG, Role.ADMIN, tag=_TAG, status=202, repeatable=False, example={"confirm": "acme"})
class DeleteOrg(AuditedRequest[OrgDeleted], frozen=True, kw_only=True):
    """Delete the org: its keys are dead at once, everything it has is removed in the background, for good.

    `confirm` is the org's name once more. The rows are removed in pages, also after a restart. What stays is the name,
    which is not given again, and the audit log. Raises Forbidden unless an admin of the org, or the operator, asks.
    """

    org: Name
    confirm: str


class CreateOrg(AuditedRequest[OrgInfo], frozen=True, kw_only=True):
    """Make an org; one that is there already is the answer, too. Raises Forbidden for every key, OrgClosed."""

    org: Slug


class CloseOrg(AuditedRequest[OrgInfo], frozen=True, kw_only=True):
    """End all keys of an org, for good. Raises Forbidden for every key, OrgNotFound."""

    org: Name


class ListOrgs(Request[OrgList], frozen=True, kw_only=True):
    """All orgs, in the order of their names, after one. It is asked of no org."""

    org: str = ""
    after: Name | None = None
    limit: Limit = 100


@operation("list_audit", GET, f"{ORG}/audit", Role.ADMIN, tag=_TAG)
class ListAudit(Request[AuditList], frozen=True, kw_only=True):
    """The record of acts, the newest first.

    The next page is `before` the last one's sequence.
    """

    org: Name
    before: Number | None = None
    limit: Limit = 100


@operation("verify_audit", GET, f"{ORG}/audit/verification", Role.ADMIN, tag=_TAG)
class VerifyAudit(Request[AuditCheck], frozen=True, kw_only=True):
    """Whether the record of acts is as it was written."""

    org: Name


class KeyChecks(Protocol):
    """What the guard of a server asks."""

    def authenticate(self, key_hash: str) -> Awaitable[Principal]:
        """Whose key this is (`model.key_text.hash_key`). Answers may be half a second old. Raises Unauthenticated,
        always the same one."""
        ...

    def any(self) -> Awaitable[bool]:
        """Whether a key was ever made, in any org."""
        ...

    def record(
        self,
        *,
        org: str,
        action: str,
        subject: str = "",
        outcome: str = "done",
        detail: str = "",
        by: Principal | None = None,
        address: str = "",
    ) -> Awaitable[AuditEntry]:
        """Write an act into the org's audit log. Nothing is ever removed from it."""
        ...
