"""API keys of one org, on the database or by way of a server: the same calls, the same answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from holdfast.client.remote.http_client import HttpClient, escaped
from holdfast.contract.keys import CreateKey, Keys, RevokeKey, RotateKey
from holdfast.model.keys import Role
from holdfast.transport.rest import key_views as kv
from holdfast.transport.rest.bodies import NoBody

if TYPE_CHECKING:
    from holdfast.cli.target import Target


class ApiKeys(Protocol):
    async def create(self, name: str, role: Role, expires_in_s: float | None) -> kv.KeyMadeView: ...

    async def page(self, before: str | None, limit: int) -> tuple[kv.KeyView, ...]: ...

    async def revoke(self, key_id: str) -> kv.KeyView: ...

    async def rotate(self, key_id: str, overlap_s: float) -> kv.KeyMadeView: ...

    async def audit(self, before: int | None, limit: int) -> tuple[kv.AuditView, ...]: ...

    async def verify_audit(self) -> kv.AuditCheckView: ...


class DatabaseKeys:
    """Whoever has the database may make the first key, and any other."""

    def __init__(self, keys: Keys, org: str) -> None:
        self._keys = keys
        self._org = org

    async def create(self, name: str, role: Role, expires_in_s: float | None) -> kv.KeyMadeView:
        request = CreateKey(org=self._org, name=name, role=role, expires_in_s=expires_in_s)
        return kv.key_made_view(await self._keys.create(request))

    async def page(self, before: str | None, limit: int) -> tuple[kv.KeyView, ...]:
        return tuple(kv.key_view(found) for found in await self._keys.list(self._org, before, limit))

    async def revoke(self, key_id: str) -> kv.KeyView:
        return kv.key_view(await self._keys.revoke(RevokeKey(org=self._org, key_id=key_id)))

    async def rotate(self, key_id: str, overlap_s: float) -> kv.KeyMadeView:
        request = RotateKey(org=self._org, key_id=key_id, overlap_s=overlap_s)
        return kv.key_made_view(await self._keys.rotate(request))

    async def audit(self, before: int | None, limit: int) -> tuple[kv.AuditView, ...]:
        return tuple(kv.audit_view(row) for row in await self._keys.audit(self._org, before, limit))

    async def verify_audit(self) -> kv.AuditCheckView:
        return kv.audit_check_view(await self._keys.verify_audit(self._org))


class ServerKeys:
    """With an admin's key, those of its org."""

    def __init__(self, http_client: HttpClient, org_path: str) -> None:
        self._http = http_client
        self._path = f"{org_path}/keys"
        self._audit = f"{org_path}/audit"

    async def create(self, name: str, role: Role, expires_in_s: float | None) -> kv.KeyMadeView:
        body = kv.CreateKeyBody(name=name, role=role, expires_in_seconds=expires_in_s)
        # Not sent twice: a second key that nobody has seen would be left behind.
        return await self._http.post(self._path, body, kv.KeyMadeView, repeatable=False)

    async def page(self, before: str | None, limit: int) -> tuple[kv.KeyView, ...]:
        query = {"before": before, "limit": limit}
        return (await self._http.get(self._path, kv.KeyList, query)).keys

    async def revoke(self, key_id: str) -> kv.KeyView:
        return await self._http.post(f"{self._path}/{escaped(key_id)}/revoke", NoBody(), kv.KeyView)

    async def rotate(self, key_id: str, overlap_s: float) -> kv.KeyMadeView:
        body = kv.RotateKeyBody(overlap_seconds=overlap_s)
        return await self._http.post(f"{self._path}/{escaped(key_id)}/rotate", body, kv.KeyMadeView, repeatable=False)

    async def audit(self, before: int | None, limit: int) -> tuple[kv.AuditView, ...]:
        return (await self._http.get(self._audit, kv.AuditList, {"before": before, "limit": limit})).acts

    async def verify_audit(self) -> kv.AuditCheckView:
        return await self._http.get(f"{self._audit}/verification", kv.AuditCheckView)


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[ApiKeys]:
    if target.server is None:
        async with target.engine(read_only=True) as engine:
            yield DatabaseKeys(engine.keys, target.org)
    else:
        async with target.http_client() as (http_client, org_path):
            yield ServerKeys(http_client, org_path)
