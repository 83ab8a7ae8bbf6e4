"""`recover()`: rows that are missing are found from the history and mended, and the report says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast import WorkflowContext, WorkflowHandle, WorkflowStatus, workflow
from holdfast.model import events as e
from tests.conftest import QUICK, OpenEngine, until
from tests.database_access import change
from tests.faults import app
from tests.faults.conftest import lines, read_all, sound_records
from verification.invariants import check


@workflow
async def _blocked(ctx: WorkflowContext) -> None:
    await asyncio.get_running_loop().create_future()


async def _is(handle: WorkflowHandle, status: WorkflowStatus) -> bool:
    return await handle.status() is status


async def _all_waiting(handles: list[WorkflowHandle]) -> bool:
    return all([await _is(handle, WorkflowStatus.WAITING) for handle in handles])


async def delete(database_url: str, table: str) -> int:
    """Delete all rows of a table by hand; how many there were."""
    return await change(database_url, f"DELETE FROM holdfast_{table}")


async def test_recovering_a_sound_database_repairs_nothing(engine: OpenEngine, folder: Path, database_url: str):
    """Executions that wait for signals, timers and tasks which are there are counted and left alone."""
    running = await engine(workflows=app.WORKFLOWS, config=QUICK)
    handles = [
        await running.client.start_workflow(app.collect, 1),
        await running.client.start_workflow(app.naps_once, 3600),
        await running.client.start_workflow(app.long_chore, "gate"),
    ]
    await until(lambda: _all_waiting(handles))
    before = [len(record.history) for record in await sound_records(database_url)]

    report = await running.recover()

    assert (3, 0, ()) == (report.open_executions, report.repaired, report.stuck)
    assert before == [len(record.history) for record in await sound_records(database_url)]


async def test_deleted_timer_counts_as_fired(engine: OpenEngine, folder: Path, database_url: str):
    """An execution that waits for a timer without a row goes on as if it had fired."""
    running = await engine(workflows=app.WORKFLOWS, config=QUICK)
    handle = await running.client.start_workflow(app.naps_once, 3600)
    await until(lambda: _is(handle, WorkflowStatus.WAITING))
    assert 1 == await delete(database_url, "timers")
    assert [("I16", "waits for timer 1, which has no row")] == [
        (violation.invariant, violation.text) for violation in check(await read_all(database_url))
    ]

    report = await running.recover()

    assert (1, 1, 0, 0) == (report.repaired, report.timers_restored, report.tasks_restored, report.made_ready)
    assert "awake" == await handle.result(timeout=10)
    assert 0 == (await running.recover()).repaired
    # The timer did fire early, and the history can't hide it.
    assert ["I13"] == [violation.invariant for violation in check(await read_all(database_url))]


async def test_deleted_task_is_put_back(engine: OpenEngine, folder: Path, database_url: str):
    """An execution that waits for a task without a row gets it queued again, with the input of its history."""
    (folder / "gate").touch()
    running = await engine(workflows=app.WORKFLOWS, config=QUICK)
    handle = await running.client.start_workflow(app.long_chore, "gate", workflow_id="one")
    await until(lambda: _is(handle, WorkflowStatus.WAITING))
    assert 1 == await delete(database_url, "tasks")

    report = await running.recover()

    assert (1, 0, 1, 0) == (report.repaired, report.timers_restored, report.tasks_restored, report.made_ready)
    await engine(tasks=app.TASKS, config=QUICK)
    result = await handle.result(timeout=10)
    assert [["one", 1, result]] == lines(folder, "ledger")
    await sound_records(database_url)


async def test_deleted_ready_row_is_made_again(engine: OpenEngine, folder: Path, database_url: str):
    """An execution with unread events and no ready row, which nobody would ever claim, is made ready."""
    await (await engine(workflows=app.WORKFLOWS)).shutdown()
    api = await engine()
    handle = await api.client.start_workflow("steps", "key", workflow_id="one")
    assert 1 == await delete(database_url, "ready")
    working = await engine(workflows=app.WORKFLOWS, config=QUICK)
    assert ["I16"] == sorted({violation.invariant for violation in check(await read_all(database_url))})

    report = await working.recover()

    assert (1, 0, 0, 1) == (report.repaired, report.timers_restored, report.tasks_restored, report.made_ready)
    assert 3 == len(await working.client.workflow(handle.id).result(timeout=10))
    await sound_records(database_url)


async def test_deleted_ready_row_of_an_execution_with_a_history_is_made_again(
    engine: OpenEngine, folder: Path, database_url: str
):
    """The same for an execution that has run before: a signal has come, and its wake-up is lost."""
    first = await engine(workflows=app.WORKFLOWS, config=QUICK)
    handle = await first.client.start_workflow("collect", 2)
    await handle.signal("item", "a")
    await until(lambda: _seen(handle))
    await first.shutdown()
    api = await engine()
    await api.client.workflow(handle.id).signal("item", "b")
    assert 1 == await delete(database_url, "ready")
    working = await engine(workflows=app.WORKFLOWS, config=QUICK)

    report = await working.recover()

    assert (1, 1) == (report.repaired, report.made_ready)
    assert ["a", "b"] == await working.client.workflow(handle.id).result(timeout=10)
    await sound_records(database_url)


async def _seen(handle: WorkflowHandle) -> bool:
    """Whether it is at rest again after the signal."""
    last = (await handle.history())[-1].body
    return isinstance(last, e.TurnCompleted) and last.up_to > 1


async def test_leases_of_a_worker_without_a_row_are_taken_back(engine: OpenEngine, folder: Path, database_url: str):
    """Work leased by a session that is not known, whatever became of its row, is given to others."""
    first = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=QUICK)
    handles = [await first.client.start_workflow(kind, "gate") for kind in ("long_step", "long_chore")]
    await until(lambda: len(lines(folder, "begun")) == 2)
    assert 1 == await delete(database_url, "workers")
    second = await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=QUICK)

    await second.recover()
    await until(lambda: len(lines(folder, "begun")) == 4)
    (folder / "gate").touch()
    for handle in handles:
        await second.client.workflow(handle.id).result(timeout=10)
    await sound_records(database_url)


async def test_report_names_the_stuck(engine: OpenEngine, folder: Path, database_url: str):
    """Executions that only new code or a person can help are listed."""
    running = await engine(workflows=[_blocked], config=QUICK)
    handle = await running.client.start_workflow(_blocked)
    await until(lambda: _is(handle, WorkflowStatus.STUCK))

    assert (handle.id,) == (await running.recover()).stuck


async def test_recovery_is_for_the_org_of_the_engine(engine: OpenEngine, folder: Path, database_url: str):
    """Another org's executions are neither counted nor mended."""
    ours = await engine(workflows=app.WORKFLOWS, config=QUICK, org="ours")
    handle = await ours.client.start_workflow(app.naps_once, 3600)
    await until(lambda: _is(handle, WorkflowStatus.WAITING))
    await delete(database_url, "timers")
    theirs = await engine(config=QUICK, org="theirs")

    assert (0, 0) == ((report := await theirs.recover()).open_executions, report.repaired)
    assert (1, 1) == ((report := await ours.recover()).open_executions, report.repaired)
