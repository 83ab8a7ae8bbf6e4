"""A broadcast to very many, with the process that delivers it killed on the way: everybody gets it, nobody twice."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.database_access import Reader
from tests.faults.conftest import Spawn, lines, sound_records
from tests.faults.waiting import write_waiting

CROWD = 100_000
KILLS = 10
APP = "tests.faults.broadcast_app"
OPTIONS: dict[str, Any] = {"module": APP, "key": "the one", "store": {"synchronous": "normal"}}


class Onlooker(Reader):
    """Looks into the database from outside."""

    @property
    def waiting(self) -> int:
        return self.one("SELECT count(*) FROM holdfast_subscriptions")

    @property
    def received(self) -> tuple[int, int]:
        """How often it was received, and by how many."""
        counts = "count(*), count(DISTINCT execution_id)"
        [(times, receivers)] = self.rows(f"SELECT {counts} FROM holdfast_events WHERE type = 'BROADCAST_RECEIVED'")
        return times, receivers

    @property
    def pages(self) -> tuple[int, int]:
        """How far it has come, by its own account: the last wait, and how many got it."""
        found = self.rows("SELECT cursor, delivered FROM holdfast_deliveries")
        return (found[0][0], found[0][1]) if found else (0, 0)

    def sample(self, ids: Sequence[str]) -> list[list[str]]:
        """The types of events in these histories."""
        sql = "SELECT type FROM holdfast_events WHERE execution_id = ? ORDER BY seq"
        return [[row[0] for row in self.rows(sql, one)] for one in ids]


@pytest.fixture
def onlooker(database_url: str) -> Iterator[Callable[[], Onlooker]]:
    """Opens onlookers, and closes them."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(Onlooker(database_url)))


@pytest.mark.slow
async def test_a_broadcast_to_100_000_survives_ten_kills(
    spawn: Spawn, folder: Path, database_url: str, onlooker: Callable[[], Onlooker]
):
    """001-22, 001-24: each gets it exactly once, and whoever asks again is told the right count."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ids = await write_waiting(database_url, CROWD)
    reader = onlooker()
    killed_after = []
    for number in range(KILLS):
        process = await spawn("throw", **OPTIONS)
        # Progress, not time: every kill but the last few must hit a delivery that is under way.
        enough = min((number + 1) * CROWD // (KILLS + 2), reader.pages[1] + chance.randrange(2_000, 8_000))
        await until(lambda: reader.pages[1] >= enough, timeout=60)  # noqa: B023 - awaited here
        await process.kill()
        killed_after.append(reader.pages)
        # What is gone from the waits is in the histories, and counted: one transaction.
        delivered = reader.pages[1]
        assert (delivered, delivered) == reader.received
        assert CROWD == reader.waiting + delivered
    assert killed_after == sorted(set(killed_after)), "each kill hit it further on"
    assert 0 < reader.waiting, "it was still under way when it was killed for the last time"

    process = await spawn("throw", **OPTIONS)
    assert 0 == await process.ended(within_s=120)

    assert [("the one", CROWD)] == [(line[0], line[2]) for line in lines(folder, "thrown")]
    assert (0, (CROWD, CROWD)) == (reader.waiting, reader.received)
    assert CROWD == reader.one("SELECT count(*) FROM holdfast_ready")
    assert 1 == reader.one("SELECT count(*) FROM holdfast_deliveries")
    ended = ["WORKFLOW_STARTED", "WAIT_STARTED", "WORKFLOW_TASK_COMPLETED", "BROADCAST_RECEIVED"]
    assert [ended] * 200 == reader.sample(chance.sample(ids, 200))


@pytest.mark.slow
async def test_overlapping_broadcasts_with_killed_workers(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Workers die while broadcasts of two names follow each other: what each execution got is in order, and adds up."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    options: dict[str, Any] = {
        "module": APP,
        "worker": {"lease_s": 0.5},
        "engine": {"crash_attempts": 100},
        "store": {"synchronous": "normal"},
    }
    workers = [await spawn("work", **options) for _ in range(2)]
    api = await engine()
    handles = [await api.client.start_workflow("waits_again_and_again", 6) for _ in range(300)]
    ended = asyncio.gather(*(handle.result(timeout=90) for handle in handles))
    counts: dict[int, int] = {}
    while not ended.done():
        thrown = await asyncio.gather(*(api.client.broadcast(name) for name in ("left", "right", "left")))
        counts.update({one.broadcast_id: one.delivered for one in thrown})
        if len(counts) in {6, 15, 24}:
            which = chance.randrange(2)
            await workers[which].kill()
            workers[which] = await spawn("work", **options)
        await asyncio.wait([ended], timeout=chance.uniform(0.0, 0.1))

    assert {6} == {len(heard) for heard in await ended}
    records = await sound_records(database_url)
    received = [event.body for record in records for event in record.history]
    got = [body.broadcast_id for body in received if isinstance(body, e.BroadcastReceived)]
    assert counts == {number: got.count(number) for number in counts}


@pytest.mark.slow
async def test_who_waits_is_answered_though_the_deliverer_dies(
    spawn: Spawn, folder: Path, database_url: str, onlooker: Callable[[], Onlooker]
):
    """Two processes deliver the same broadcast side by side, one is killed: the other one's count is that of all."""
    count = CROWD // 5
    await write_waiting(database_url, count)
    reader = onlooker()
    thrower = await spawn("throw", **OPTIONS)
    await until(lambda: reader.pages[1] > 0)
    waiter = await spawn("throw", **OPTIONS)
    before = reader.pages[1]
    await until(lambda: reader.pages[1] > before or reader.waiting == 0)
    await thrower.kill()

    assert 0 == await waiter.ended(within_s=60)

    answers = lines(folder, "thrown")
    assert {("the one", count)} == {(line[0], line[2]) for line in answers}
    assert len({line[1] for line in answers}) == 1, "one broadcast, by whatever number"
    assert waiter.pid in {line[3] for line in answers}
    assert (0, (count, count)) == (reader.waiting, reader.received)
