"""kill -9 while standalone tasks run: they are tried again elsewhere, and every one ends once."""

from __future__ import annotations

from pathlib import Path

from holdfast import WorkflowStatus
from holdfast.model.executions import State
from tests.conftest import WATCHFUL, OpenEngine, until
from tests.faults import app
from tests.faults.conftest import Spawn, lines, sound_records

COUNT = 20


async def test_a_killed_worker_loses_no_task(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """What it was running has its next attempt with another worker; the results are those of calls that happened."""
    client = (await engine(config=WATCHFUL)).client
    process = await spawn("work", worker={"lease_s": 0.6}, store={"synchronous": "normal"})
    gated = [await client.start_task(app.gated_chore, "gate", f"g{number}") for number in range(3)]
    await until(lambda: len(lines(folder, "begun")) == 3)
    chores = [await client.start_task(app.chore, f"c{number}", 1, task_id=f"c{number}") for number in range(COUNT)]
    await process.kill()
    (folder / "gate").touch()
    await engine(tasks=app.TASKS, config=WATCHFUL)

    results = [await handle.result(timeout=30) for handle in (*gated, *chores)]
    assert set(results) <= {line[-1] for line in lines(folder, "ledger")}
    assert [2] * 3 == [(await handle.view()).attempt for handle in gated]
    assert [WorkflowStatus.COMPLETED] * (COUNT + 3) == [view.status async for view in client.iter_tasks(limit=7)]
    records = await sound_records(database_url)
    assert [State.COMPLETED] * (COUNT + 3) == [record.execution_row.state for record in records]
