"""`engine.keys`: API keys, orgs and the audit log, for the operator, who has the database itself."""

from __future__ import annotations

from holdfast.contract import keys as ks
from holdfast.contract.operation import Api
from holdfast.contract.principals import Principal
from holdfast.errors import Unauthenticated
from holdfast.model.durations import Duration, duration_s
from holdfast.model.key_text import hash_key
from holdfast.model.keys import Role


class OperatorKeys:
    """Keys of all orgs. The operator may make the first key of an org, and any other."""

    def __init__(self, api: Api, checks: ks.KeyChecks) -> None:
        self._api = api
        self._checks = checks

    async def create(self, *, org: str, name: str, role: Role, expires_in: Duration | None = None) -> ks.CreatedKey:
        """A new key; its org is made if there is none. Its text is in the answer, and nobody can show it again. Without
        `expires_in` it counts until it is revoked. Raises OrgClosed."""
        expires_in_s = None if expires_in is None else duration_s(expires_in, "expires_in")
        return await self._api.call(ks.CreateKey(org=org, name=name, role=role, expires_in_s=expires_in_s))

    async def get(self, org: str, key_id: str) -> ks.KeyInfo:
        """Raises KeyNotFound."""
        return await self._api.call(ks.GetKey(org=org, key_id=key_id))

    async def revoke(self, org: str, key_id: str) -> ks.KeyInfo:
        """End a key; one that has ended stays as it is. Raises KeyNotFound."""
        return await self._api.call(ks.RevokeKey(org=org, key_id=key_id))

    async def rotate(self, org: str, key_id: str, *, overlap: Duration = ks.DAY_S) -> ks.CreatedKey:
        """Another secret for the same key. The present one counts for `overlap` more; one that was replaced before it
        ends at once. Raises KeyNotFound, KeyEnded."""
        return await self._api.call(ks.RotateKey(org=org, key_id=key_id, overlap_s=duration_s(overlap, "overlap")))

    async def authenticate(self, text: str) -> Principal:
        """Whose key this is. Raises Unauthenticated, always the same one."""
        key_hash = hash_key(text)
        if key_hash is None:
            raise Unauthenticated
        return await self._checks.authenticate(key_hash)

    async def create_org(self, org: str) -> ks.OrgInfo:
        """Make an org; one that is there already is the answer, too. The first key of an org makes it, too. Raises
        OrgClosed."""
        return await self._api.call(ks.CreateOrg(org=org))

    async def close_org(self, org: str) -> ks.OrgInfo:
        """End all keys of an org, for good: its name is not given again. Raises OrgNotFound."""
        return await self._api.call(ks.CloseOrg(org=org))

    async def delete_org(self, org: str, *, confirm: str) -> ks.OrgDeleted:
        """End all keys of an org at once, and remove everything it has in the background. `confirm` is its name once
        more. What stays is the name, which is not given again, and the audit log."""
        return await self._api.call(ks.DeleteOrg(org=org, confirm=confirm))

    async def orgs(self, *, after: str | None = None, limit: int = 100) -> list[ks.OrgInfo]:
        """In the order of their names, after one."""
        return list((await self._api.call(ks.ListOrgs(after=after, limit=limit))).orgs)

    async def audit(self, org: str, *, before: int | None = None, limit: int = 100) -> list[ks.AuditEntry]:
        """The org's audit log, the newest entry first, with numbers below `before`."""
        return list((await self._api.call(ks.ListAudit(org=org, before=before, limit=limit))).acts)

    async def verify_audit(self, org: str) -> ks.AuditCheck:
        """Whether the audit log is as it was written. Raises OrgNotFound."""
        return await self._api.call(ks.VerifyAudit(org=org))

    # Last, so that `list` means the type in the annotations above.
    async def list(self, org: str, *, before: str | None = None, limit: int = 100) -> tuple[ks.KeyInfo, ...]:
        """The newest first, with ids below `before`; also those that have ended."""
        return (await self._api.call(ks.ListKeys(org=org, before=before, limit=limit))).keys
