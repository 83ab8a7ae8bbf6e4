"""Whether a transaction stands whose COMMIT was never answered.

Every transaction of a writer leaves its number in the writer's own row. After a lost connection that row tells: its
number is there, or it is not, also after a crash of the server, or when another one has taken over.
"""

from __future__ import annotations

import secrets
from typing import Any

from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.postgres.writing import Piece

_MARK = statement("writers", "mark")
_LAST = statement("writers", "last")
_END = statement("writers", "end")
_DELETE = statement("writers", "delete")
_BEGUN = "SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"


class Marks:
    """The marks of one writer."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(8)
        self._number = 0
        self._session: tuple[int, Any] | None = None

    async def met(self, connection: Any) -> None:
        """A new connection is used from now on."""
        self._session = (connection.get_server_pid(), await connection.fetchval(_BEGUN))

    def next(self, now: int) -> tuple[int, Piece]:
        """The number of the next transaction, and how it is written in it."""
        self._number += 1
        return self._number, (_MARK, (self._id, self._number, now))

    async def stands(self, connection: Connection, number: int) -> bool:
        """Asked on another connection. The old one's session is ended first; what it still does is waited for."""
        if self._session is not None:
            await connection.fetch(_END, *self._session)
        return bool(await connection.fetchval(_LAST, self._id) == number)

    async def clear(self, connection: Connection) -> None:
        await connection.execute(_DELETE, self._id)
