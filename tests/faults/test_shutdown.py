"""Stopping in order: what runs may finish, the rest is handed over at once, and nothing has to wait for a lease."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import EngineConfig, StoreConfig, WorkerConfig
from holdfast.model import events as e
from holdfast.model.executions import State
from tests.conftest import OpenEngine, until
from tests.faults import app
from tests.faults.conftest import Spawn, lines, sound_records, value_of
from verification.invariants import Record

# A lease beyond every patience of these tests: who waits for its end fails.
LEASE_S = 600.0


def config(grace_s: float, lease_s: float = LEASE_S) -> EngineConfig:
    return EngineConfig(
        store=StoreConfig(synchronous="normal"), worker=WorkerConfig(lease_s=lease_s, shutdown_grace_s=grace_s)
    )


def outcomes(record: Record) -> list[e.StepCompleted | e.TaskCompleted]:
    """What steps and tasks gave, in order."""
    return [event.body for event in record.history if isinstance(event.body, e.StepCompleted | e.TaskCompleted)]


async def test_running_task_and_step_finish_within_the_grace(engine: OpenEngine, folder: Path, database_url: str):
    """Shutdown waits for both; their results are recorded, and another engine needs only go on from there."""
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(10.0))
    for kind in ("long_step", "long_chore"):
        await first.client.start_workflow(kind, "gate", workflow_id=kind)
    await until(lambda: len(lines(folder, "begun")) == 2)

    stopping = asyncio.ensure_future(first.shutdown())
    done, _ = await asyncio.wait([stopping], timeout=0.1)
    assert not done
    (folder / "gate").touch()
    await stopping

    records = await sound_records(database_url)
    outcomes = [
        event.body
        for record in records
        for event in record.history
        if isinstance(event.body, e.StepCompleted | e.TaskCompleted)
    ]
    assert ["STEP_COMPLETED", "TASK_COMPLETED"] == [body.TYPE for body in outcomes]
    second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(1.0))
    for record in records:
        await second.client.workflow(record.execution_row.id).result(timeout=10)
    assert 2 == len(lines(folder, "ledger")) == len(lines(folder, "begun"))
    await sound_records(database_url)


@pytest.mark.parametrize("kind", ["long_step", "long_chore"])
@pytest.mark.parametrize("already_there", [True, False])
async def test_work_longer_than_the_grace_is_handed_over(
    kind: str, already_there: bool, engine: OpenEngine, folder: Path, database_url: str
):
    """Another engine, there before or started later, does it at once; the interrupted attempt does not count."""
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(0.1))
    handle = await first.client.start_workflow(kind, "gate", workflow_id="one")
    await until(lambda: lines(folder, "begun"))
    if already_there:
        second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(0.1))
    await first.shutdown()
    if not already_there:
        second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(0.1))

    await until(lambda: len(lines(folder, "begun")) == 2)
    (folder / "gate").touch()
    result = await second.client.workflow(handle.id).result(timeout=10)

    (record,) = await sound_records(database_url)
    (outcome,) = outcomes(record)
    assert result == value_of(outcome.result)
    assert 1 == (outcome.attempt if isinstance(outcome, e.TaskCompleted) else outcome.attempts)
    assert 0 == record.execution_row.crashes


async def test_queued_tasks_are_left_for_others(engine: OpenEngine, folder: Path, database_url: str):
    """Tasks claimed but not begun, for want of threads, are handed back with no attempt counted."""
    narrow = EngineConfig(worker=WorkerConfig(lease_s=LEASE_S, shutdown_grace_s=0.1, task_threads=1))
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=narrow)
    handles = [await first.client.start_workflow("long_chore", "gate", workflow_id=str(number)) for number in range(5)]
    await until(lambda: lines(folder, "begun"))
    await first.shutdown()
    (folder / "gate").touch()

    second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(0.1))
    for handle in handles:
        await second.client.workflow(handle.id).result(timeout=10)

    records = await sound_records(database_url)
    bodies = [body for record in records for body in outcomes(record)]
    assert [1] * 5 == [body.attempt for body in bodies if isinstance(body, e.TaskCompleted)]


async def test_chain_of_steps_continues_elsewhere(engine: OpenEngine, folder: Path, database_url: str):
    """Stopped in the middle of a chain, every step has run exactly once when the other engine has finished it."""
    length = 60
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(5.0))
    handle = await first.client.start_workflow("chain", length, workflow_id="one")
    await until(lambda: len(lines(folder, "ledger")) >= 10)
    await first.shutdown()
    recorded = len(lines(folder, "ledger"))
    second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(5.0))

    result = await second.client.workflow(handle.id).result(timeout=20)

    assert 10 <= recorded < length
    assert list(range(length)) == [number for _, number, _ in lines(folder, "ledger")]
    assert result == [value for _, _, value in lines(folder, "ledger")]
    await sound_records(database_url)


@pytest.mark.slow
async def test_heartbeats_continue_while_running_work_finishes(engine: OpenEngine, folder: Path, database_url: str):
    """A grace of several leases: nobody takes over what still runs, so it runs once."""
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(20.0, lease_s=0.5))
    handles = [
        await first.client.start_workflow(kind, "gate", workflow_id=kind) for kind in ("long_step", "long_chore")
    ]
    await until(lambda: len(lines(folder, "begun")) == 2)
    second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(1.0, lease_s=0.5))

    stopping = asyncio.ensure_future(first.shutdown())
    done, _ = await asyncio.wait([stopping], timeout=2.0)
    assert not done
    (folder / "gate").touch()
    await stopping

    for handle in handles:
        await second.client.workflow(handle.id).result(timeout=10)
    assert 2 == len(lines(folder, "begun"))
    await sound_records(database_url)


async def test_turns_in_progress_are_recorded_before_the_end(engine: OpenEngine, folder: Path, database_url: str):
    """Shutdown right after many starts: everything acknowledged is there and is finished by the next engine."""
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(5.0))
    handles = [
        await first.client.start_workflow(kind, f"{kind}-{number}")
        for number in range(50)
        for kind in ("steps", "chores", "naps")
    ]
    await first.shutdown()
    await sound_records(database_url)

    second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=config(5.0))
    for handle in handles:
        await second.client.workflow(handle.id).result(timeout=20)

    records = await sound_records(database_url)
    assert [State.COMPLETED] * 150 == [record.execution_row.state for record in records]
    assert {0} == {record.execution_row.crashes for record in records}


TOLD_TO_END: dict[str, Any] = {"worker": {"lease_s": LEASE_S, "shutdown_grace_s": 0.2}}


@pytest.mark.slow
async def test_worker_process_told_to_end_hands_over(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """SIGTERM to a process with work in hand: another process does all of it without waiting for a lease."""
    api = await engine(config=config(1.0))
    first = await spawn("work", **TOLD_TO_END)
    handles = [
        await api.client.start_workflow(kind, "gate", workflow_id=f"{kind}-{number}")
        for number in range(5)
        for kind in ("long_step", "long_chore")
    ]
    await until(lambda: len(lines(folder, "begun")) == 10)
    await spawn("work", **TOLD_TO_END)

    first.terminate()
    assert "stopped" == await first.line()
    await until(lambda: len(lines(folder, "begun")) == 20)
    (folder / "gate").touch()

    for handle in handles:
        await handle.result(timeout=10)
    assert 0 == await first.ended()
    records = await sound_records(database_url)
    bodies = [body for record in records for body in outcomes(record)]
    assert [1] * 5 == [body.attempt for body in bodies if isinstance(body, e.TaskCompleted)]


@pytest.mark.slow
async def test_process_ends_although_a_body_does_not(engine: OpenEngine, spawn: Spawn, folder: Path):
    """A body in a thread can't be stopped; it must not keep a process alive that has handed its work over."""
    api = await engine(config=config(1.0))
    first = await spawn("work", **TOLD_TO_END)
    for kind in ("long_step", "long_chore"):
        await api.client.start_workflow(kind, "gate")
    await until(lambda: len(lines(folder, "begun")) == 2)

    first.terminate()

    assert 0 == await first.ended(within_s=10)
