"""What all nodes of a database have in common: an identity to know it by, and a secret to make tokens from."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from holdfast.store.postgres.statements import Connection, statement

_PROPOSE = statement("settings", "propose")
_ALL = statement("settings", "all")
_PLACE = statement("settings", "place")


class Settings(NamedTuple):
    identity: str
    secret: bytes


async def settings(connection: Connection) -> Settings:
    """As the first node has set them."""
    await connection.execute(_PROPOSE, ["identity", "secret"], [secrets.token_hex(16), secrets.token_hex(32)])
    found = dict(await connection.fetch(_ALL))
    return Settings(await _identity(connection, found), bytes.fromhex(found["secret"]))


async def identity(connection: Connection) -> str:
    """What it is now: a database may be replaced by a copy of it while nodes are at work."""
    return await _identity(connection, dict(await connection.fetch(_ALL)))


async def _identity(connection: Connection, found: dict[str, str]) -> str:
    return f"{found.get('identity')} {await connection.fetchval(_PLACE)}"
