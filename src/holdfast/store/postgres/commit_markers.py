"""Whether a transaction stands whose COMMIT was never answered, and whether those still stand that were.

Every transaction of a writer leaves its number in the writer's own row. After a lost connection that row tells: its
number is there, or it is not, also after a crash of the server, or when another one has taken over. If not even the
last number is there whose COMMIT was answered, a standby has taken over that had not got it, or a backup was restored.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from holdfast.store.postgres.statements import Connection, statement
from holdfast.store.postgres.writing import Piece

_MARK = statement("writers", "mark")
_MARK_ON = statement("writers", "mark_on")
_LAST = statement("writers", "last")
_LATEST = statement("writers", "latest")
_END = statement("writers", "end")
_DELETE = statement("writers", "delete")
_BEGUN = "SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
ELSEWHERE: Final = "22012"
"""What a server says to a mark that is for another timeline. No other statement of a transaction divides."""


class CommitMarkers:
    """The marks of one writer."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(8)
        self._number = 0
        self._stood = 0
        self._session: tuple[int, Any] | None = None

    async def met(self, connection: Any) -> int:
        """A new connection is used from now on. How many transactions of this writer are gone that had stood."""
        self._session = (connection.get_server_pid(), await connection.fetchval(_BEGUN))
        if not self._stood:
            return 0
        last = await connection.fetchval(_LATEST, self._id) or 0
        lost, self._stood = max(self._stood - last, 0), min(self._stood, last)
        return lost

    def stands_now(self, number: int) -> None:
        """Its COMMIT was answered."""
        self._stood = number

    def next(self, now: int, timeline: str | None = None) -> tuple[int, Piece]:
        """The number of the next transaction, and how it is written in it; on no other timeline, if one is given."""
        self._number += 1
        written = (self._id, self._number, now)
        return self._number, (_MARK, written) if timeline is None else (_MARK_ON, (*written, timeline))

    async def stands(self, connection: Connection, number: int) -> bool:
        """Asked on another connection. The old one's session is ended first; what it still does is waited for."""
        if self._session is not None:
            await connection.fetch(_END, *self._session)
        return bool(await connection.fetchval(_LAST, self._id) == number)

    async def clear(self, connection: Connection) -> None:
        await connection.execute(_DELETE, self._id)
