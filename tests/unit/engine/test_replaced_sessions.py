"""One worker session takes the place of another: what goes over, and what is free."""

from __future__ import annotations

from typing import Any

from holdfast import Engine, WorkflowContext, task, workflow
from holdfast.contract import workers as wk
from holdfast.model.commands import ScheduleTask, Turn
from holdfast.model.values import Token
from holdfast.store import reads
from tests.conftest import OpenEngine


@task
async def chore() -> None:
    """Never run here: the tests are the worker."""


@workflow
async def works(ctx: WorkflowContext) -> None:
    await ctx.task(chore)


def session(name: str, **fields: Any) -> wk.RegisterWorker:
    settings = {"builds": {("works", "1"): "b"}, "task_kinds": ("chore",), "turn_slots": 5, "task_slots": 5}
    return wk.RegisterWorker(org="default", session=name, host="h", pid=1, lease_s=30.0, **{**settings, **fields})


async def held(engine: Engine, name: str, executions: int = 1) -> tuple[list[wk.TaskWork], list[wk.TurnWork]]:
    """A session that runs a task of each of so many executions, and holds another execution."""
    workers = engine._local.workers
    await workers.register(session(name))
    tasks: list[wk.TaskWork] = []
    for number in range(executions + 1):
        await engine.client.start_workflow(works, workflow_id=f"{name}-{number}")
        (turn,) = [work for work in await workers.poll(name) if isinstance(work, wk.TurnWork)]
        if number == executions:
            return tasks, [turn]
        command = ScheduleTask(task_no=1, kind="chore")
        await workers.complete_turn(
            wk.CompleteTurn(
                org="default",
                execution_id=turn.execution_id,
                token=turn.token,
                base_seq=1,
                worker=name,
                turns=(Turn(up_to=1, commands=(command,)),),
                waiting_for=(),
            )
        )
        tasks += [work for work in await workers.poll(name) if isinstance(work, wk.TaskWork)]
    raise AssertionError("the last round returns")


async def test_running_attempts_go_over_and_turns_are_free(engine: OpenEngine):
    """The new session completes the task with the old token; the execution is handed out again."""
    opened = await engine(workflows=[works])
    await opened._worker.stop()  # type: ignore[union-attr]
    workers = opened._local.workers
    (task_work,), (turn,) = await held(opened, "old")
    await workers.register(session("new", builds={}))
    attempt = (task_work.execution_id, task_work.task_no, task_work.token)

    kept = await workers.replace(wk.ReplaceSession(org="default", session="old", by="new", running=(attempt,)))

    assert (attempt,) == kept
    (row,) = await opened.storage.read(reads.Tasks("default", task_work.execution_id))
    assert ("new", 1) == (row.worker, row.attempt)
    execution = await opened._local.reads.row("default", turn.execution_id)
    assert execution.ready is not None
    assert (None, 0) == (execution.ready.worker, execution.crashes)
    await workers.complete_task(
        wk.CompleteTask(
            org="default",
            session="new",
            execution_id=task_work.execution_id,
            task_no=1,
            token=task_work.token,
        )
    )
    assert [] == await opened.storage.read(reads.Tasks("default", task_work.execution_id))


async def test_attempt_that_is_not_named_is_free(engine: OpenEngine):
    """Nor one named with another token: both are handed back, and no attempt is counted."""
    opened = await engine(workflows=[works])
    await opened._worker.stop()  # type: ignore[union-attr]
    workers = opened._local.workers
    tasks, _ = await held(opened, "old", executions=2)
    await workers.register(session("new", builds={}, task_kinds=()))
    wrong = (tasks[0].execution_id, tasks[0].task_no, Token(1, tasks[0].token.nonce ^ 1))

    kept = await workers.replace(wk.ReplaceSession(org="default", session="old", by="new", running=(wrong,)))

    assert () == kept
    for found in tasks:
        (row,) = await opened.storage.read(reads.Tasks("default", found.execution_id))
        assert (None, 0) == (row.worker, row.attempt)


async def test_session_of_another_org_is_left_alone(engine: OpenEngine):
    """Whoever names it with the wrong org frees nothing."""
    opened = await engine(workflows=[works])
    await opened._worker.stop()  # type: ignore[union-attr]
    workers = opened._local.workers
    (found,), (turn,) = await held(opened, "old")

    await workers.replace(wk.ReplaceSession(org="other", session="old", by="new"))

    (row,) = await opened.storage.read(reads.Tasks("default", found.execution_id))
    execution = await opened._local.reads.row("default", turn.execution_id)
    assert execution.ready is not None
    assert ("old", "old") == (row.worker, execution.ready.worker)


async def test_a_paused_worker_stays_paused_under_its_new_name(engine: OpenEngine):
    """A broken connection is no way around a pause; the old name is forgotten."""
    opened = await engine(workflows=[works])
    await opened._worker.stop()  # type: ignore[union-attr]
    workers = opened._local.workers
    await workers.register(session("old"))
    await opened.client.pause_worker("old", reason="why")
    await workers.register(session("new"))
    await workers.replace(wk.ReplaceSession(org="default", session="old", by="new"))
    handle = await opened.client.start_workflow(works)

    (found,) = await opened.client.list_workers()
    assert ("new", "why") == (found.id, found.pause.reason if found.pause else None)
    assert "PENDING" == await handle.status()
    await opened.client.resume_worker("new")
    assert [handle.id] == [work.execution_id for work in await workers.poll("new") if isinstance(work, wk.TurnWork)]
