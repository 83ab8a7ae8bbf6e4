"""The database's clock is the only one that counts: nodes may disagree about the time, leases and timers may not."""

from __future__ import annotations

import time
from typing import Any

from holdfast.store.postgres.statements import Connection

_GOOD_FOR = 100_000
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


async def time_of(connection: Any) -> int:
    """What time it is there."""
    now: int = await connection.fetchval(_NOW)
    return now


class DatabaseClock:
    """Read by transactions, and reckoned from the last reading for a moment after it, unless the connection is another
    one by then: it may lead to another server. Goes back when the server's clock does: two nodes, or two transactions
    of one, must not disagree for as long as it was put back. That the times of a history never decrease, and that
    nobody commits by an old lease, does not depend on it."""

    def __init__(self) -> None:
        self._ahead = time.time_ns() // 1000 - time.monotonic_ns() // 1000
        self._read_at = 0
        self._source: Connection | None = None

    def __call__(self) -> int:
        return time.monotonic_ns() // 1000 + self._ahead

    async def read(self, connection: Connection) -> int:
        """The time, inside a transaction."""
        here = time.monotonic_ns() // 1000
        if here - self._read_at < _GOOD_FOR and connection is self._source:
            return here + self._ahead
        now = await time_of(connection)
        self._read_at = time.monotonic_ns() // 1000
        self._ahead = now - self._read_at
        self._source = connection
        return now
