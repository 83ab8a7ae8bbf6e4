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
    place = await connection.fetchval(_PLACE)
    return Settings(f"{found['identity']} {place}", bytes.fromhex(found["secret"]))
