"""Workers that hold an execution by turns: each goes on from what the others have recorded, not from its own memory."""

import pytest

from holdfast import WorkflowContext, WorkflowStatus, task, workflow
from tests.conftest import until
from verification.invariants import check, read


@task
async def note(number: int) -> int:
    return number


async def noted(number: int) -> int:
    return number


@workflow
async def by_tasks(ctx: WorkflowContext, count: int) -> list[int]:
    return [await ctx.task(note, await ctx.wait_for_signal("n", int)) for _ in range(count)]


@workflow
async def by_steps(ctx: WorkflowContext, count: int) -> list[int]:
    return [await ctx.run(noted, await ctx.wait_for_signal("n", int)) for _ in range(count)]


async def at_rest(handle):
    return await handle.status() is WorkflowStatus.WAITING and not await handle.pending_tasks()


@pytest.mark.parametrize("kind", [by_tasks, by_steps])
async def test_a_cached_program_is_not_trusted_after_another_worker_has_held_the_execution(engine, kind):
    """A, B, A, B …: the program that A has kept does not know B's turns, and must not make their moves again."""
    engines = [await engine(workflows=[by_tasks, by_steps], tasks=[note]) for _ in range(2)]
    handle = await engines[0].client.start_workflow(kind, 6)
    for number in range(6):
        await until(lambda: at_rest(handle))
        await engines[number % 2].client.signal_workflow(handle.id, "n", number)

    assert list(range(6)) == await handle.result(timeout=10)
    history = await handle.history()
    kept = "TASK_SCHEDULED" if kind is by_tasks else "STEP_COMPLETED"
    assert 6 == [event.type for event in history].count(kept)
    holders = {event.body.worker for event in history if event.type == "WORKFLOW_TASK_COMPLETED"}
    assert 2 == len(holders), "both have held it"
    assert [] == [str(violation) for violation in check(await read(engines[0].storage))]
