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


async def test_it_goes_back_with_the_server():
    """For all who ask: what is reckoned from the last reading does not stay ahead of it."""
    clock, server = DatabaseClock(), Server(5_000_000_000_000_000)
    await clock.read(server)  # type: ignore[arg-type]
    behind = Server(5_000_000_000_000_000 - 3_600_000_000)
    first = await clock.read(behind)  # type: ignore[arg-type]
    again = await clock.read(behind)  # type: ignore[arg-type]
    assert behind.asked == 1
    assert behind.now == first <= again <= clock() < first + 60_000_000
