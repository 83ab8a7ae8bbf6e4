"""Two processes on one file: one takes the calls, the other does the work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import WorkflowStatus
from holdfast.errors import ExecutionClosed, UnknownWorkflowKind
from tests.conftest import OpenEngine, until
from tests.faults.conftest import Spawn, lines, sound_records


@pytest.mark.slow
async def test_workflow_started_here_is_run_there(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """An engine without workflows starts a kind that another process knows, and gets its result."""
    api = await engine()
    with pytest.raises(UnknownWorkflowKind):
        await api.client.start_workflow("steps", "early")
    worker = await spawn("work")

    handles = [await api.client.start_workflow(kind, f"{kind}-{n}") for n in range(20) for kind in ("steps", "chores")]

    results = await asyncio.gather(*(handle.result(timeout=20) for handle in handles))
    assert [3] * 40 == [len(result) for result in results]
    assert 0 == await worker.stop()
    await sound_records(database_url)


@pytest.mark.slow
async def test_work_is_shared_by_two_processes(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """When one process has all its task slots in use, the other takes what is waiting."""
    api = await engine()
    workers = [await spawn("work", worker={"task_slots": 2}) for _ in range(2)]
    for number in range(4):
        await api.client.start_workflow("long_chore", "gate", workflow_id=str(number))

    begun = await until(lambda: found if len(found := lines(folder, "begun")) == 4 else None)

    assert sorted(worker.pid for worker in workers for _ in range(2)) == sorted(pid for _, _, pid in begun)
    (folder / "gate").touch()


@pytest.mark.slow
async def test_signal_from_elsewhere_is_noticed_while_a_step_runs(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """An execution held by another process for a long step hears a signal sent from here before the step ends."""
    api = await engine()
    await spawn("work")
    handle = await api.client.start_workflow("listens_at_work", "gate", workflow_id="one")
    await until(lambda: lines(folder, "begun"))

    await handle.signal("word", "hello")

    await until(lambda: [line for line in lines(folder, "ledger") if line[:2] == ["heard", "hello"]])
    assert await handle.status() is WorkflowStatus.RUNNING
    (folder / "gate").touch()
    assert "hello" == (await handle.result(timeout=20))[0]
    await sound_records(database_url)


@pytest.mark.slow
async def test_signal_from_elsewhere_is_noticed_by_a_waiting_execution(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """An execution at rest in another process goes on with a signal sent from here; when closed it refuses more."""
    api = await engine()
    await spawn("work")
    handle = await api.client.start_workflow("listens", "key", workflow_id="one")

    async def waiting() -> bool:
        return await handle.status() is WorkflowStatus.WAITING

    await until(waiting)
    await handle.signal("word", "one")
    await until(lambda: lines(folder, "ledger"))
    await until(waiting)
    await handle.signal("word", "two")

    assert ["one", "two"] == (await handle.result(timeout=20))[::2]
    with pytest.raises(ExecutionClosed):
        await handle.signal("word", "three")
    await sound_records(database_url)


@pytest.mark.slow
async def test_cancel_and_terminate_from_elsewhere_reach_the_worker(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """Both end executions that another process holds; what it still reports about them changes nothing."""
    api = await engine()
    worker = await spawn("work", watched=True)
    cancelled = await api.client.start_workflow("long_step", "gate", workflow_id="cancelled")
    terminated = await api.client.start_workflow("long_step", "gate", workflow_id="terminated")
    await until(lambda: len(lines(folder, "begun")) == 2)

    assert await cancelled.cancel("enough")
    assert await terminated.terminate("now")

    async def statuses() -> bool:
        return [WorkflowStatus.CANCELLED, WorkflowStatus.TERMINATED] == [
            await cancelled.status(),
            await terminated.status(),
        ]

    await until(statuses)
    (folder / "gate").touch()
    after = await api.client.start_workflow("steps", "after")
    await after.result(timeout=20)
    assert 0 == await worker.stop()
    await sound_records(database_url)
