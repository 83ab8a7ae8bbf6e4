"""Orgs, keys and the record of acts: what a batch loads and writes of them, and what callers read."""

from __future__ import annotations

import sqlite3
from typing import Final

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
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from holdfast.store.sqlite.statements import rows, statement

_UPSERT_ORGS = rows("keys", "upsert_orgs")
_ORGS = rows("keys", "orgs_by_slug")
_ORGS_AFTER = statement("keys", "orgs_after")
_UPSERT = rows("keys", "upsert")
_KEYS = rows("keys", "by_id")
_BY_HASH = statement("keys", "by_hash")
_OF_ORG = statement("keys", "of_org")
_ANY = statement("keys", "any")
_INSERT_AUDIT = rows("keys", "insert_audit")
_AUDIT = statement("keys", "audit_of_org")

_AFTER_ALL_IDS: Final = "~"
_AFTER_ALL_NUMBERS: Final = 2**62


def load_keys(connection: sqlite3.Connection, plan: LoadPlan, loaded: Loaded) -> None:
    for row in _ORGS.fetch(connection, [(slug,) for slug in sorted(plan.orgs)]):
        loaded.orgs[row[0]] = row_to_org(row)
    for row in _KEYS.fetch(connection, [(key_id,) for key_id in sorted(plan.keys)]):
        loaded.keys[row[0]] = row_to_key(row)


def write_keys(connection: sqlite3.Connection, changes: Changes) -> None:
    _UPSERT_ORGS.execute(connection, [org_to_row(org) for org in changes.orgs.values()])
    _UPSERT.execute(connection, [key_to_row(key) for key in changes.keys.values()])
    _INSERT_AUDIT.execute(connection, [audit_to_row(act) for act in changes.audit])


def key_by_hash(connection: sqlite3.Connection, key_hash: str) -> tuple[ApiKey, Org] | None:
    row = connection.execute(_BY_HASH, (key_hash, key_hash)).fetchone()
    return row_to_key_and_org(row) if row is not None else None


def key(connection: sqlite3.Connection, org: str, key_id: str) -> ApiKey | None:
    found = (row_to_key(row) for row in _KEYS.fetch(connection, [(key_id,)]))
    return next((record for record in found if record.org == org), None)


def keys(connection: sqlite3.Connection, org: str, before: str | None, limit: int) -> list[ApiKey]:
    found = connection.execute(_OF_ORG, (org, _AFTER_ALL_IDS if before is None else before, limit))
    return [row_to_key(row) for row in found.fetchall()]


def any_keys(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_ANY).fetchone()[0])


def org(connection: sqlite3.Connection, slug: str) -> Org | None:
    return next((row_to_org(row) for row in _ORGS.fetch(connection, [(slug,)])), None)


def orgs(connection: sqlite3.Connection, after: str, limit: int) -> list[Org]:
    return [row_to_org(row) for row in connection.execute(_ORGS_AFTER, (after, limit)).fetchall()]


def audit(connection: sqlite3.Connection, org: str, before: int | None, limit: int) -> list[AuditRow]:
    found = connection.execute(_AUDIT, (org, _AFTER_ALL_NUMBERS if before is None else before, limit))
    return [row_to_audit(row) for row in found.fetchall()]
