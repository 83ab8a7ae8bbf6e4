"""API keys and the record of acts. The engine's operations record themselves; who asks is told by the door."""

from __future__ import annotations

from holdfast.contract import keys as ks
from holdfast.server.rest.calls import Call
from holdfast.transport.rest import key_views as kv
from holdfast.transport.rest.times import instant


async def create_key(call: Call) -> kv.KeyMadeView:
    body: kv.CreateKeyBody = call.body
    return kv.key_made_view(
        await call.engine_api.keys.create(
            ks.CreateKey(
                org=call.org,
                name=body.name,
                role=body.role,
                expires_in_s=body.expires_in_seconds,
                by=call.principal,
                address=call.address,
            )
        )
    )


async def list_keys(call: Call) -> kv.KeyList:
    found = await call.engine_api.keys.list(call.org, call.query.before, call.query.limit)
    return kv.KeyList(keys=tuple(kv.key_view(key) for key in found))


async def get_key(call: Call) -> kv.KeyView:
    return kv.key_view(await call.engine_api.keys.get(call.org, call.path["key_id"]))


async def revoke_key(call: Call) -> kv.KeyView:
    request = ks.RevokeKey(org=call.org, key_id=call.path["key_id"], by=call.principal, address=call.address)
    return kv.key_view(await call.engine_api.keys.revoke(request))


async def rotate_key(call: Call) -> kv.KeyMadeView:
    request = ks.RotateKey(
        org=call.org,
        key_id=call.path["key_id"],
        overlap_s=call.body.overlap_seconds,
        by=call.principal,
        address=call.address,
    )
    return kv.key_made_view(await call.engine_api.keys.rotate(request))


async def list_audit(call: Call) -> kv.AuditList:
    rows = await call.engine_api.keys.audit(call.org, call.query.before, call.query.limit)
    return kv.AuditList(acts=tuple(kv.audit_view(row) for row in rows))


async def verify_audit(call: Call) -> kv.AuditCheckView:
    return kv.audit_check_view(await call.engine_api.keys.verify_audit(call.org))


async def delete_org(call: Call) -> kv.OrgDeletedView:
    request = ks.DeleteOrg(slug=call.org, confirm=call.body.confirm, by=call.principal, address=call.address)
    org = await call.engine_api.keys.delete_org(request)
    return kv.OrgDeletedView(org=org.slug, closed_at=instant(org.closed_at))
