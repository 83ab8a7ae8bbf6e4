"""Code that does not fit the history, and code that takes its worker down: parked and visible, nobody else harmed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Engine, EngineConfig, WorkerConfig, WorkflowStatus
from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.faults.conftest import Process, Spawn, lines, sound_records

OLD, NEW = {"HOLDFAST_FAULTS_CODE": "old"}, {"HOLDFAST_FAULTS_CODE": "new"}


async def has_status(engine: Engine, execution_id: str, status: WorkflowStatus) -> bool:
    return await engine.client.workflow(execution_id).status() is status


@pytest.mark.slow
async def test_changed_workflow_is_stuck_and_continues_with_its_own_code(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Other moves than recorded: stuck with both sides and both lines, then finished by a worker with the old code."""
    api = await engine()
    old = await spawn("work", env=OLD)
    handle = await api.client.start_workflow("changing", "key", workflow_id="one")
    await until(lambda: has_status(api, handle.id, WorkflowStatus.WAITING))
    await until(lambda: lines(folder, "ledger"))
    assert 0 == await old.stop()

    new = await spawn("work", env=NEW)
    await handle.signal("word", "last")
    await until(lambda: has_status(api, handle.id, WorkflowStatus.STUCK))

    history = await handle.history()
    (scheduled,) = [event for event in history if isinstance(event.body, e.TaskScheduled)]
    stuck = (await handle.describe()).stuck
    assert stuck is not None
    assert ("nondeterminism", scheduled.seq) == (stuck.code, stuck.event_seq)
    assert ("task 1 'chore'", "timer 1") == (stuck.recorded, stuck.attempted)
    assert stuck.recorded_line.startswith("app.py:")
    assert stuck.attempted_line.startswith("app.py:")
    assert stuck.recorded_line != stuck.attempted_line
    assert stuck.recorded in stuck.message
    assert stuck.attempted in stuck.message
    assert [handle.id] == [
        found.workflow_execution_id for found in (await api.client.list_workflows(status="STUCK")).items
    ]

    old = await spawn("work", env=OLD)
    assert "last" == await handle.result(timeout=20)
    assert new.is_running
    assert 1 == len(lines(folder, "ledger"))
    await sound_records(database_url)


@pytest.mark.slow
async def test_signals_reach_a_stuck_execution(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """A stuck execution is open: what is sent to it is kept, and read when fitting code is there."""
    api = await engine()
    old = await spawn("work", env=OLD)
    handle = await api.client.start_workflow("changing", "key", workflow_id="one")
    await until(lambda: has_status(api, handle.id, WorkflowStatus.WAITING))
    assert 0 == await old.stop()
    new = await spawn("work", env=NEW)
    await handle.signal("word", "first")
    await until(lambda: has_status(api, handle.id, WorkflowStatus.STUCK))

    answer = await handle.signal("word", "second")
    assert await has_status(api, handle.id, WorkflowStatus.STUCK)
    assert 0 == await new.stop()
    await spawn("work", env=OLD)

    assert "first" == await handle.result(timeout=20)
    assert answer.signal_event_sequence in [letter.seq for letter in await api.client.dead_letters(handle.id)]
    await sound_records(database_url)


# --- poison -------------------------------------------------------------------------------------------------------

POISON: dict[str, Any] = {"worker": {"lease_s": 0.5}, "engine": {"crash_attempts": 3}}
WATCHING = EngineConfig(worker=WorkerConfig(lease_s=0.5), crash_attempts=3)


class Supervisor:
    """Starts the worker again whenever it goes down, as an operating system would."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self.codes: list[int] = []
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            try:
                process: Process = await self._spawn("work", **POISON)
            except AssertionError:
                continue  # it went down before it could say that it was ready
            self.codes.append(await process.ended_at_last())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.mark.slow
async def test_poisonous_workflow_is_parked_and_others_finish(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """A workflow that ends its process is stuck with worker_crashes after so many losses; other work is done."""
    api = await engine(config=WATCHING)
    await (await spawn("work")).stop()
    poisonous = await api.client.start_workflow("poison", "cure", workflow_id="poison")
    supervisor = Supervisor(spawn)
    await until(lambda: lines(folder, "poisoned"))
    others = [await api.client.start_workflow(kind, f"{kind}-{n}") for n in range(5) for kind in ("steps", "chores")]

    await until(lambda: has_status(api, poisonous.id, WorkflowStatus.STUCK), timeout=40)
    for handle in others:
        await handle.result(timeout=20)

    view = await poisonous.describe()
    assert view.stuck is not None
    assert "worker_crashes" == view.stuck.code
    assert 3 == len(lines(folder, "poisoned"))
    (folder / "cure").touch()
    assert await poisonous.resume()
    assert "cured" == await poisonous.result(timeout=20)
    await supervisor.stop()
    await sound_records(database_url)


@pytest.mark.slow
async def test_neighbours_of_a_poisonous_workflow_are_not_parked_with_it(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Innocent executions held by the same worker at every crash finish; only the guilty one is parked."""
    api = await engine(config=WATCHING)
    await (await spawn("work")).stop()
    slow = [await api.client.start_workflow("slow_step", 0.3, workflow_id=f"slow-{number}") for number in range(10)]
    poisonous = await api.client.start_workflow("poison", "cure", workflow_id="poison")
    supervisor = Supervisor(spawn)

    await until(lambda: has_status(api, poisonous.id, WorkflowStatus.STUCK), timeout=40)
    for handle in slow:
        await handle.result(timeout=20)

    await supervisor.stop()
    await sound_records(database_url)
