"""kill -9 while events are published, waited for and received: every one arrives, each once."""

from __future__ import annotations

import random
import secrets
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OpenEngine, until
from tests.faults.conftest import Spawn, lines, sound_records
from tests.faults.events_app import END, SHARERS

COUNT = 60
KILLS = 8

pytestmark = pytest.mark.slow


async def published(folder: Path, wanted: int) -> None:
    await until(lambda: len(lines(folder, "published")) >= wanted, timeout=60)


async def test_events_survive_kills_of_publisher_and_receivers(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """H25, 004-22: every collector has every event once and in order, the sharers have each event once among them, and
    every starting event has started one workflow."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    options: dict[str, Any] = {
        "module": "tests.faults.events_app",
        "count": COUNT,
        "worker": {"lease_s": 0.5},
        "engine": {"crash_attempts": 100},
        "store": {"synchronous": "normal"},
    }
    for _ in range(KILLS):
        before = len(lines(folder, "published"))
        process = await spawn("publish", **options)
        wanted = before + chance.randrange(1, COUNT // 2)
        await published(folder, wanted)
        await process.kill()
        await sound_records(database_url)
    process = await spawn("publish", **options)
    await until(lambda: lines(folder, "done"), timeout=90)
    assert 0 == await process.ended()

    client = (await engine()).client
    everything = list(range(COUNT))
    assert everything == await (await client.find_workflow("collect")).result(timeout=10)
    assert everything[::2] == await (await client.find_workflow("collect_even")).result(timeout=10)
    shared: list[int] = []
    for sharer in range(SHARERS):
        got = await (await client.find_workflow(f"share-{sharer}")).result(timeout=10)
        assert got == [*sorted(got[:-1]), END]
        shared += got[:-1]
    assert everything == sorted(shared)
    records = await sound_records(database_url)
    begun: list[Any] = [record.history[0].body for record in records if record.execution_row.kind == "started"]
    assert everything == sorted(int(bytes(body.input)) for body in begun)
    assert len(begun) == len({body.event_id for body in begun})
