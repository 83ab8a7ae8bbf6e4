"""The database's clock, as nodes of PostgreSQL read it."""

from __future__ import annotations

from typing import Any

from holdfast.store.postgres.clocks import DatabaseClock


class Server:
    """A connection to a server with a clock of its own."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.asked = 0

    async def fetchval(self, *_: Any) -> int:
        self.asked += 1
        return self.now


async def test_a_reading_is_good_for_a_moment():
    clock, server = DatabaseClock(), Server(5_000_000_000_000_000)
    first = await clock.read(server)  # type: ignore[arg-type]
    again = await clock.read(server)  # type: ignore[arg-type]
    assert server.asked == 1
    assert first <= again <= clock() < first + 60_000_000


async def test_another_connection_may_lead_to_another_server():
    clock, server, standby = DatabaseClock(), Server(5_000_000_000_000_000), Server(5_000_000_007_000_000)
    await clock.read(server)  # type: ignore[arg-type]
    assert await clock.read(standby) == 5_000_000_007_000_000  # type: ignore[arg-type]


async def test_it_does_not_go_back():
    clock, server, behind = DatabaseClock(), Server(5_000_000_000_000_000), Server(5_000_000_000_000_000 - 9_000_000)
    await clock.read(server)  # type: ignore[arg-type]
    before = clock()
    await clock.read(behind)  # type: ignore[arg-type]
    assert clock() >= before
