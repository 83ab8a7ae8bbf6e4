"""Workers of programs with snapshots that are killed: what is stored is always what the history gives."""

from __future__ import annotations

import asyncio
import random
import secrets

import pytest

from holdfast import Engine
from holdfast.model.executions import State
from holdfast.model.snapshots import Snapshot
from holdfast.replay.machine import Machine
from holdfast.store import reads
from holdfast.testing.histories import program_maker
from holdfast.testing.invariants import read
from tests.conftest import OpenEngine, until
from tests.faults.conftest import Spawn, sound_records
from tests.unit.frontends.toy.programs import BUSY, COUNT, HALVES

APP = "tests.faults.toy_app"
BY_KIND = {definition.kind: definition for definition in (BUSY, COUNT, HALVES)}


async def snapshot_of(api: Engine, execution_id: str) -> Snapshot | None:
    return await api.storage.read(reads.Row(Snapshot, execution_id, "default"))


async def check_snapshots(api: Engine) -> int:
    """How many open executions have one; each is, byte for byte, what running from event 1 gives."""
    found = 0
    for record in await read(api.storage):
        stored = await snapshot_of(api, record.head.id)
        if stored is None:
            continue
        found += 1
        # Workers go on meanwhile: the history is read after the snapshot, so it has the turn.
        history = await api.storage.read(reads.History("default", record.head.id))
        definition = BY_KIND[record.head.kind]
        machine = Machine(program_maker(definition, "default", record.head.id))
        machine.replay([event for event in history if getattr(event.body, "up_to", 0) <= stored.up_to])
        assert stored.state == machine.snapshot()
    return found


async def see_through(api: Engine, number: int) -> int:
    if number % 2:
        handle = await api.client.start_workflow("count")
        for _ in range(20):
            await handle.signal("next", 1)
            await asyncio.sleep(0.01)
        await handle.signal("next", 1_000_000)
    else:
        handle = await api.client.start_workflow("busy", number)
        for name in ("extra", "first", "extra", "second"):
            await handle.signal(name, 5)
            await asyncio.sleep(0.02)
    result: int = await handle.result(timeout=90)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("cached", [0, 10_000])
async def test_workers_killed_at_random_leave_sound_snapshots(
    engine: OpenEngine, spawn: Spawn, database_url: str, cached: int
):
    """Two workers, one or the other killed again and again: all programs finish with the right results."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    workers = [await spawn("work", module=APP, cached=cached) for _ in range(2)]
    api = await engine()
    # One that stays open, however quickly the others end.
    held = await api.client.start_workflow("count")
    await held.signal("next", 1)
    await until(lambda: snapshot_of(api, held.id))
    crowd = asyncio.gather(*(see_through(api, number) for number in range(40)))
    seen = 0
    for _ in range(6):
        await asyncio.wait([crowd], timeout=chance.uniform(0.1, 0.5))
        number = chance.randrange(2)
        await workers[number].kill()
        seen += await check_snapshots(api)
        workers[number] = await spawn("work", module=APP, cached=cached)
    results = await crowd
    await held.signal("next", 1_000_000)
    assert 1_000_001 == await held.result(timeout=90)

    assert [1_000_020 if number % 2 else number * 6 + 7 for number in range(40)] == results
    assert seen >= 6
    records = await sound_records(database_url)
    assert {State.COMPLETED} == {record.head.state for record in records}
    assert 0 == await check_snapshots(api)
