"""Orgs, keys and the record of acts: what a batch loads and writes of them, and what callers read.

An org's row is the lock of its record, a key's row its own. Both are locked before everything else but the sessions of
workers, orgs first, each kind in order.
"""

from __future__ import annotations

from holdfast.model.keys import ApiKey, AuditRow, Org
from holdfast.store.key_rows import (
    audit_to_row,
    key_to_row,
    org_to_row,
    row_to_audit,
    row_to_key,
    row_to_key_and_org,
    row_to_org,
)
from holdfast.store.postgres.read_session import index_only
from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.postgres.writing import Writing
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from holdfast.store.rows import Row

INSERT_ORGS = statement("keys", "insert_orgs")
_UPDATE_ORGS = statement("keys", "update_orgs")
_LOCK_ORGS = statement("keys", "lock_orgs")
_ORG = statement("keys", "org")
_ORGS_AFTER = statement("keys", "orgs_after")
_UPSERT = statement("keys", "upsert")
_LOCK = statement("keys", "lock")
_BY_ID = statement("keys", "by_id")
_BY_HASH = statement("keys", "by_hash")
_OF_ORG = statement("keys", "of_org")
_ANY = statement("keys", "any")
_INSERT_AUDIT = statement("keys", "insert_audit")
_AUDIT = statement("keys", "audit_of_org")


async def load_keys(connection: Connection, plan: LoadPlan, loaded: Loaded) -> None:
    if plan.orgs:
        for row in await connection.fetch(_LOCK_ORGS, sorted(plan.orgs)):
            loaded.orgs[row[0]] = row_to_org(row)
    if plan.keys:
        for row in await connection.fetch(_LOCK, sorted(plan.keys)):
            loaded.keys[row[0]] = row_to_key(row)


def new_orgs(changes: Changes) -> list[Row]:
    """Their names must be free: two transactions may make the same org."""
    return [org_to_row(changes.orgs[slug]) for slug in sorted(changes.new_orgs)]


def write_keys(writing: Writing, changes: Changes) -> None:
    changed = [org_to_row(org) for slug, org in sorted(changes.orgs.items()) if slug not in changes.new_orgs]
    writing.rows(_UPDATE_ORGS, changed)
    writing.rows(_UPSERT, [key_to_row(key) for _, key in sorted(changes.keys.items())])
    writing.rows(_INSERT_AUDIT, [audit_to_row(act) for act in changes.audit])


@index_only
async def key_by_hash(connection: Connection, key_hash: str) -> tuple[ApiKey, Org] | None:
    row = await connection.fetchrow(_BY_HASH, key_hash)
    return row_to_key_and_org(row) if row is not None else None


@index_only
async def key(connection: Connection, org: str, key_id: str) -> ApiKey | None:
    row = await connection.fetchrow(_BY_ID, org, key_id)
    return row_to_key(row) if row is not None else None


@index_only
async def keys(connection: Connection, org: str, before: str | None, limit: int) -> list[ApiKey]:
    return [row_to_key(row) for row in await connection.fetch(_OF_ORG, org, before, limit)]


async def any_keys(connection: Connection) -> bool:
    return bool(await connection.fetchval(_ANY))


@index_only
async def org(connection: Connection, slug: str) -> Org | None:
    row = await connection.fetchrow(_ORG, slug)
    return row_to_org(row) if row is not None else None


@index_only
async def orgs(connection: Connection, after: str, limit: int) -> list[Org]:
    return [row_to_org(row) for row in await connection.fetch(_ORGS_AFTER, after, limit)]


@index_only
async def audit(connection: Connection, org: str, before: int | None, limit: int) -> list[AuditRow]:
    return [row_to_audit(row) for row in await connection.fetch(_AUDIT, org, before, limit)]
