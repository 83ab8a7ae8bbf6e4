"""Which past a connection leads to: the one that this node has worked with, or another.

A standby that takes over begins a new timeline, and so does a server that is restored to a moment; a restart keeps the
old one, also after a crash. A dump is restored to another cluster, or to another database of the same one. Whoever
notices any of these must not rely on what it remembers: it may have read what is lost now, although nothing of its own
is, and what has come since may have the same numbers.

A session stays where it is: its server does not change the timeline while it runs. Behind a pooler that gives every
transaction another session, each says in its mark on which timeline it may be written.

Any role may ask, on PostgreSQL 14 to 18. Services and forks may refuse (Aurora knows no WAL of its own, some hide the
control file): what can't be asked is not compared, and a loss is noticed by a node's own transactions alone
(`commit_markers`). The timeline in the control file is no help: it is that of the last checkpoint, and a new primary
makes its first later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import asyncpg

from holdfast.store.postgres.driver_errors import PERMISSION_DENIED, is_connection_lost, sqlstate

# The first eight digits of a WAL file's name are its timeline.
_TIMELINE: Final = "left(pg_walfile_name(pg_current_wal_lsn()), 8)"
_SYSTEM: Final = "(SELECT system_identifier::text FROM pg_control_system())"
_DATABASE: Final = "(SELECT oid::text FROM pg_database WHERE datname = current_database())"
# What is asked, and what instead where that is refused.
_ASKED: Final = (
    f"SELECT {_TIMELINE}, {_SYSTEM}, {_DATABASE}",
    f"SELECT {_TIMELINE}, NULL, {_DATABASE}",
    f"SELECT NULL, NULL, {_DATABASE}",
)
# No such function; not for this role; not here. It will be no different the next time.
_FOR_GOOD: Final = frozenset({"42883", PERMISSION_DENIED, "0A000"})


class DatabaseIdentity(NamedTuple):
    """What is not known is None."""

    timeline: str | None = None
    system: str | None = None
    database: str | None = None


class FailoverDetector:
    """The pasts that one writer has met."""

    def __init__(self) -> None:
        self._known = DatabaseIdentity()
        self._asked: Sequence[str] = _ASKED

    async def ask(self, connection: Any) -> DatabaseIdentity:
        """One statement, outside of a transaction. Fails only if the connection does."""
        for sql in self._asked:
            try:
                return DatabaseIdentity(*await connection.fetchrow(sql))
            except asyncpg.PostgresError as error:
                if is_connection_lost(error):
                    raise
                if sqlstate(error) in _FOR_GOOD:
                    self._asked = self._asked[1:]
        return DatabaseIdentity()

    @property
    def timeline(self) -> str | None:
        """The one that this writer has met last, if it was told."""
        return self._known.timeline

    def moved_to(self, identity: DatabaseIdentity) -> bool:
        """Whether it is another one than before. From now on it is the one that is known."""
        known = self._known
        moved = any(None not in pair and pair[0] != pair[1] for pair in zip(known, identity, strict=True))
        self._known = DatabaseIdentity(*(now or before for now, before in zip(identity, known, strict=True)))
        return moved
