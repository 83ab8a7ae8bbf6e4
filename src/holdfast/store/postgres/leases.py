"""Keeps the lease of a worker session whose event loop is blocked, without that loop."""

from __future__ import annotations

from holdfast.store.postgres.connections import Database
from holdfast.store.postgres.statements import statement

_RENEW = statement("workers", "renew")


async def renew(database: Database, worker: str, lease_s: float) -> bool:
    """Whether the session was still alive, and is for so long from now."""
    async with database.session() as connection:
        return bool(await connection.fetchval(_RENEW, worker, int(lease_s * 1_000_000)))
