"""A worker that is suspended past its lease: another takes over, and what the first one reports later is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.database_access import locked
from tests.faults.conftest import Process, Spawn, lines, sound_records, value_of

WORKER = {"lease_s": 1.0, "shutdown_grace_s": 2.0}


async def suspend_with_report(worker: Process, report: str, execution_id: str, folder: Path, database_url: str) -> None:
    """Suspend the worker at the worst moment: its report is on the way and not yet written."""
    async with locked(database_url) as lock:
        (folder / f"gate-{worker.pid}").touch()
        await until(lambda: ["sent", report, execution_id, worker.pid] in lines(folder, "reports"))
        worker.suspend()
        lock.turn_away()


def refusals(folder: Path, worker: Process) -> list[tuple[str, str]]:
    """What this worker has reported in vain, and why."""
    found = [line for line in lines(folder, "reports") if line[0] == "refused" and line[3] == worker.pid]
    return [(name, why) for _, name, _, _, why in found]


async def finishes_alone(api: Engine, worker: Process) -> bool:
    """Whether this worker, the only one left, still takes work and does it."""
    handle = await api.client.start_workflow("chores", "after")
    await handle.result(timeout=15)
    done = [event.body for event in await handle.history() if isinstance(event.body, e.TaskCompleted)]
    return {str(worker.pid)} == {body.worker.split("-")[-2] for body in done}


@pytest.mark.slow
async def test_step_of_a_suspended_worker_is_recorded_once(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """It wakes while another worker is at the same step: its commit is refused with StaleClaim, and it works on."""
    first = await spawn("work", worker=WORKER, watched=True)
    api = await engine()
    handle = await api.client.start_workflow("long_step", "gate", workflow_id="one")
    await until(lambda: lines(folder, "begun"))
    second = await spawn("work", worker=WORKER)

    await suspend_with_report(first, "complete_turn", handle.id, folder, database_url)
    await until(lambda: ["one", second.pid] in lines(folder, "begun"))
    first.wake()

    await until(lambda: ("complete_turn", "StaleClaim") in refusals(folder, first))
    (folder / "gate").touch()
    result = await handle.result(timeout=20)
    assert 0 == await second.stop()
    assert await finishes_alone(api, first)
    record = (await sound_records(database_url))[0]
    (step,) = [event.body for event in record.history if isinstance(event.body, e.StepCompleted)]
    ledger = [value for key, value in (line for line in lines(folder, "ledger") if line[0] == "one")]
    assert result == value_of(step.result) == ledger[1] != ledger[0]


@pytest.mark.slow
async def test_task_of_a_suspended_worker_is_recorded_once(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """It wakes while another worker is at the next attempt: its report is refused as StaleAttempt, and it works on."""
    first = await spawn("work", worker=WORKER, watched=True)
    api = await engine()
    handle = await api.client.start_workflow("long_chore", "gate", workflow_id="one")
    await until(lambda: lines(folder, "begun"))
    second = await spawn("work", worker=WORKER)

    await suspend_with_report(first, "complete_task", handle.id, folder, database_url)
    await until(lambda: ["one", 2, second.pid] in lines(folder, "begun"))
    first.wake()

    await until(lambda: ("complete_task", "StaleAttempt") in refusals(folder, first))
    (folder / "gate").touch()
    result = await handle.result(timeout=20)
    assert 0 == await second.stop()
    assert await finishes_alone(api, first)
    record = (await sound_records(database_url))[0]
    (done,) = [event.body for event in record.history if isinstance(event.body, e.TaskCompleted)]
    # On a machine that is busy with other things the second worker may lose its lease as well.
    assert done.attempt >= 2
    assert result == value_of(done.result)
    assert ["one", done.attempt, result] in lines(folder, "ledger")


@pytest.mark.slow
async def test_suspended_worker_that_finds_its_session_gone_continues(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Suspended in the middle of a step and of a task, it drops both when it wakes and works under a new session."""
    first = await spawn("work", worker=WORKER, watched=True)
    api = await engine()
    handles = [await api.client.start_workflow(kind, "gate", workflow_id=kind) for kind in ("long_step", "long_chore")]
    await until(lambda: len(lines(folder, "begun")) == 2)
    second = await spawn("work", worker=WORKER)

    async with locked(database_url) as lock:
        first.suspend()
        lock.turn_away()
    await until(lambda: len(lines(folder, "begun")) == 4)
    first.wake()
    await until(lambda: "had expired" in (folder / "log").read_text())
    (folder / "gate").touch()

    for handle in handles:
        await handle.result(timeout=20)
    assert 0 == await second.stop()
    assert await finishes_alone(api, first)
    history = [event.body for record in (await sound_records(database_url))[:2] for event in record.history]
    assert 2 == sum(isinstance(body, e.StepCompleted | e.TaskCompleted) for body in history)
