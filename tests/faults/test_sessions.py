"""A worker whose session has expired: what it held goes on elsewhere, and so does the worker, under a new name."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Engine, EngineConfig, StoreConfig, WorkerConfig
from holdfast.model.executions import State
from tests.conftest import OpenEngine, until
from tests.database_access import change
from tests.faults import app
from tests.faults.conftest import lines, sound_records

CONFIG = EngineConfig(
    store=StoreConfig(synchronous="normal"), worker=WorkerConfig(lease_s=0.6, shutdown_grace_s=0.2), crash_attempts=50
)


async def expire(database_url: str, session: str) -> None:
    """What time does to a process that was not given any: its session has not been heard of for too long."""
    await change(database_url, "UPDATE holdfast_workers SET lease_until_at = 1 WHERE id = ?", session)


async def next_session(engine: Engine, database_url: str) -> None:
    """The session expires, and the worker opens another."""
    worker = engine.worker
    assert worker is not None
    before = worker.session

    async def replaced() -> bool:
        # Again and again: a heartbeat may come in between and save it.
        await expire(database_url, before)
        return worker.session not in {"", before}

    await until(replaced)


async def test_worker_continues_after_its_session_expired(engine: OpenEngine, database_url: str, folder: Path):
    """Work that comes after the expiry is done, not given to the session that is gone."""
    running = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=CONFIG)
    await next_session(running, database_url)

    handles = [
        await running.client.start_workflow(kind, kind.__name__) for _ in range(5) for kind in (app.steps, app.chores)
    ]

    assert [3] * 10 == [len(await handle.result(timeout=10)) for handle in handles]
    await sound_records(database_url)


async def test_work_in_progress_is_done_after_its_session_expired(engine: OpenEngine, database_url: str, folder: Path):
    """What the expired session held, steps and tasks at work and waiting executions, is taken up again and finished."""
    running = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=CONFIG)
    step = await running.client.start_workflow(app.long_step, "gate", workflow_id="step")
    chore = await running.client.start_workflow(app.long_chore, "gate", workflow_id="chore")
    waiting = await running.client.start_workflow(app.collect, 1, workflow_id="waiting")
    await until(lambda: len(lines(folder, "begun")) == 2)

    await next_session(running, database_url)
    await waiting.signal("item", "a")
    (folder / "gate").touch()

    assert ["a"] == await waiting.result(timeout=10)
    results = [await step.result(timeout=10), await chore.result(timeout=10)]
    assert set(results) <= {line[-1] for line in lines(folder, "ledger")}
    records = await sound_records(database_url)
    assert [State.COMPLETED] * 3 == [record.execution_row.state for record in records]


@pytest.mark.slow
async def test_worker_survives_many_expiries(engine: OpenEngine, database_url: str, folder: Path):
    """Sessions that expire one after another under load: every workflow finishes all the same."""
    running = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=CONFIG)
    handles = [await running.client.start_workflow(app.naps, f"naps-{number}") for number in range(50)]
    for _ in range(3):
        await next_session(running, database_url)

    assert [2] * 50 == [len(await handle.result(timeout=30)) for handle in handles]
    await sound_records(database_url)
