"""API keys and the record of acts as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from holdfast.contract import keys as ks
from holdfast.model.keys import AuditRow, Role
from holdfast.transport.rest.bodies import Body, Limit, Name, Number, Seconds
from holdfast.transport.rest.times import instant, instant_or_none
from holdfast.transport.rest.views import View


class CreateKeyBody(Body, frozen=True, kw_only=True):
    """Without `expires_in_seconds` the key counts until it is revoked."""

    name: Name
    role: Role
    expires_in_seconds: Seconds | None = None


class RotateKeyBody(Body, frozen=True, kw_only=True):
    overlap_seconds: Annotated[float, Meta(extra_json_schema={"minimum": 0})] = 24 * 3600.0


class KeysQuery(Body, frozen=True, kw_only=True):
    """The next page is `before` the last one's id."""

    before: Name | None = None
    limit: Limit = 100


class AuditQuery(Body, frozen=True, kw_only=True):
    """The next page is `before` the last one's sequence."""

    before: Number | None = None
    limit: Limit = 100


class KeyView(View, frozen=True, kw_only=True):
    """A key as people see it. `old_until`: until then the secret before the last rotation counts, too."""

    key_id: str
    name: str
    role: Role
    state: ks.KeyState
    hint: str
    created_at: datetime
    created_by: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    rotated_at: datetime | None = None
    old_until: datetime | None = None


class KeyMadeView(View, frozen=True, kw_only=True):
    """A key with its text, which nobody can show again."""

    key: KeyView
    text: str


class KeyList(View, frozen=True, kw_only=True):
    keys: tuple[KeyView, ...]


class DeleteOrgBody(Body, frozen=True, kw_only=True):
    """`confirm` is the org's name once more."""

    confirm: str


class OrgDeletedView(View, frozen=True, kw_only=True):
    """Its keys are dead; its rows are being removed."""

    org: str
    closed_at: datetime


class AuditView(View, frozen=True, kw_only=True):
    """One act. `actor` is a key's id, or `operator`."""

    sequence: int
    at: datetime
    actor: str
    action: str
    subject: str = ""
    address: str = ""
    outcome: str = "done"
    detail: str = ""
    digest: str = ""


class AuditList(View, frozen=True, kw_only=True):
    acts: tuple[AuditView, ...]


class AuditCheckView(View, frozen=True, kw_only=True):
    """`first_bad` is the number of the first row that is missing or was changed."""

    rows: int
    whole: bool
    first_bad: int | None = None


def key_view(key: ks.KeyInfo) -> KeyView:
    return KeyView(
        key_id=key.id,
        name=key.name,
        role=key.role,
        state=key.state,
        hint=key.hint,
        created_at=instant(key.created_at),
        created_by=key.created_by,
        expires_at=instant_or_none(key.expires_at),
        revoked_at=instant_or_none(key.revoked_at),
        last_used_at=instant_or_none(key.last_used_at),
        rotated_at=instant_or_none(key.rotated_at),
        old_until=instant_or_none(key.old_until_at),
    )


def key_made_view(made: ks.CreatedKey) -> KeyMadeView:
    return KeyMadeView(key=key_view(made.key), text=made.text)


def audit_view(row: AuditRow) -> AuditView:
    return AuditView(
        sequence=row.seq,
        at=instant(row.at),
        actor=row.actor,
        action=row.action,
        subject=row.subject,
        address=row.address,
        outcome=row.outcome,
        detail=row.detail,
        digest=row.digest,
    )


def audit_check_view(check: ks.AuditCheck) -> AuditCheckView:
    return AuditCheckView(rows=check.rows, whole=check.is_whole, first_bad=check.first_bad)
