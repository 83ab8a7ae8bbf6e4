"""Orgs, keys, the record of acts, and what is paused."""

from __future__ import annotations

from holdfast.errors import StorageError
from holdfast.model.keys import ApiKey, AuditRow, Org
from holdfast.model.pauses import Pausable
from holdfast.store.protocol import Changes
from verification.memory.database import MemoryDatabase


def check_keys(database: MemoryDatabase, changes: Changes) -> None:
    hashes = {key.hash: key.id for key in database.keys.values()}
    for key in changes.keys.values():
        if hashes.get(key.hash, key.id) != key.id:
            raise StorageError("two keys have the same hash")
    for act in changes.audit:
        if (act.org, act.seq) in database.audit:
            raise StorageError(f"act {act.seq} of org {act.org!r} was recorded before")


def write_keys(database: MemoryDatabase, changes: Changes) -> None:
    database.orgs.update(changes.orgs)
    database.keys.update(changes.keys)
    database.audit.update({(act.org, act.seq): act for act in changes.audit})


def write_pauses(database: MemoryDatabase, changes: Changes) -> None:
    for key in changes.deleted_pauses:
        database.pauses.pop(key, None)
    database.pauses.update(changes.pauses)
    for key in [key for key in database.pauses if key[1] is Pausable.WORKER and key[2] in changes.deleted_workers]:
        del database.pauses[key]


def key_by_hash(database: MemoryDatabase, key_hash: str) -> tuple[ApiKey, Org] | None:
    for key in database.keys.values():
        if key_hash in {key.hash, key.old_hash}:
            return key, database.orgs[key.org]
    return None


def key(database: MemoryDatabase, org: str, key_id: str) -> ApiKey | None:
    found = database.keys.get(key_id)
    return found if found is not None and found.org == org else None


def keys(database: MemoryDatabase, org: str, before: str | None, limit: int) -> list[ApiKey]:
    found = [key for key in database.keys.values() if key.org == org and (before is None or key.id < before)]
    return sorted(found, key=lambda key: key.id, reverse=True)[:limit]


def orgs(database: MemoryDatabase, after: str, limit: int) -> list[Org]:
    return [org for slug, org in sorted(database.orgs.items()) if slug > after][:limit]


def audit(database: MemoryDatabase, org: str, before: int | None, limit: int) -> list[AuditRow]:
    found = [act for act in database.audit.values() if act.org == org and (before is None or act.seq < before)]
    return sorted(found, key=lambda act: act.seq, reverse=True)[:limit]
