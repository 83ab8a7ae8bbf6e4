"""What is due while no process is there: done when one is, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.model import events as e
from holdfast.model.executions import State
from tests.conftest import QUICK, OpenEngine, until
from tests.database_access import locked
from tests.faults import app
from tests.faults.conftest import Spawn, read_all, sound_records
from verification.invariants import Record


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now


def fired(record: Record) -> int:
    return sum(isinstance(event.body, e.TimerFired) for event in record.history)


async def test_timers_due_during_downtime_fire_once_after_restart(engine: OpenEngine, folder: Path, database_url: str):
    """Timers of a stopped engine fire late, never twice, never not at all; those not due yet wait."""
    clock = Clock()
    first = await engine(workflows=app.WORKFLOWS, config=QUICK, clock=clock)
    for number in range(40):
        await first.client.start_workflow(app.naps_once, 0.3 + number / 200)
    later = await first.client.start_workflow(app.naps_once, 3600)
    await until(lambda: _timers(database_url, 41))
    await first.shutdown()
    records = await sound_records(database_url)
    clock.now += 1_000_000

    second = await engine(workflows=app.WORKFLOWS, config=QUICK, clock=clock)
    for record in records:
        if record.execution_row.id != later.id:
            assert "awake" == await second.client.workflow(record.execution_row.id).result(timeout=10)

    records = await sound_records(database_url)
    assert {record.execution_row.id: int(record.execution_row.id != later.id) for record in records} == {
        record.execution_row.id: fired(record) for record in records
    }


async def _timers(database_url: str, count: int) -> bool:
    return count == sum(len(record.timers or ()) for record in await read_all(database_url))


async def test_timers_that_two_engines_see_fire_once(engine: OpenEngine, folder: Path, database_url: str):
    """Two engines that both find the same timers due fire each of them once."""
    first = await engine(workflows=app.WORKFLOWS, config=QUICK)
    second = await engine(workflows=app.WORKFLOWS, config=QUICK)
    handles = [await chosen.client.start_workflow(app.naps_once, 0.1) for _ in range(30) for chosen in (first, second)]

    for handle in handles:
        assert "awake" == await handle.result(timeout=10)

    records = await sound_records(database_url)
    assert [1] * 60 == [fired(record) for record in records]


async def test_timers_that_several_passes_see_at_once_fire_once(engine: OpenEngine, folder: Path, database_url: str):
    """Passes over the due timers that meet in one transaction fire each of them once."""
    clock = Clock()
    first = await engine(workflows=app.WORKFLOWS, config=QUICK, clock=clock)
    for _ in range(20):
        await first.client.start_workflow(app.naps_once, 0.1)
    await until(lambda: _timers(database_url, 20))
    await first.shutdown()
    clock.now += 1_000_000
    local = Engine(database_url, config=QUICK, clock=clock)._local
    await local.start()

    async with locked(database_url):
        # While the first operation waits for the lock, the passes gather behind it and become one transaction.
        first_in_line = local.upkeep.prune()
        await until(lambda: not local.queue._waiting)
        gathered = [local.upkeep.run_due() for _ in range(5)]
    await first_in_line
    passes = await asyncio.gather(*gathered)

    await local.stop()
    assert 20 == sum(due.timers_fired for due in passes)
    assert [1] * 20 == [fired(record) for record in await sound_records(database_url)]


@pytest.mark.slow
async def test_timers_of_a_killed_process_fire_once_after_restart(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """The same after kill -9: another process fires what is due, although it has never heard of it."""
    worker = await spawn("work", worker={"lease_s": 0.5})
    api = await engine()
    handles = [await api.client.start_workflow("naps_once", 0.5) for _ in range(20)]
    await api.shutdown()
    await worker.kill()
    assert [State.OPEN] * 20 == [record.execution_row.state for record in await sound_records(database_url)]

    await spawn("work", worker={"lease_s": 0.5})
    api = await engine()
    for handle in handles:
        assert "awake" == await api.client.workflow(handle.id).result(timeout=20)

    assert [1] * 20 == [fired(record) for record in await sound_records(database_url)]
