"""What a process counts for its workers: slots of executions that another process takes away, and whole sessions."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from holdfast import WorkflowContext, WorkflowStatus, workflow
from holdfast.contract import workers as wk
from holdfast.errors import StorageBusy
from tests.conftest import QUICK, until
from tests.unit.engine.records import waiting

ONE = replace(QUICK, worker=replace(QUICK.worker, turn_slots=1))


@workflow
async def quick(ctx: WorkflowContext) -> str:
    return "done"


@pytest.mark.parametrize("how", ["terminate", "reset"])
@pytest.mark.parametrize("here", [False, True])
async def test_the_slot_of_a_turn_that_was_taken_away_is_free_again(engine, how, here):
    """Whether this process has done it, and has counted it at once, or another one, and this one hears nothing of it
    before its worker wants to record what it did."""
    began, go_on = asyncio.Event(), asyncio.Event()

    async def step() -> None:
        began.set()
        await go_on.wait()

    @workflow
    async def slow(ctx: WorkflowContext) -> None:
        await ctx.run(step)
        await ctx.wait_for_signal("never")

    at_work = await engine(workflows=[slow, quick], config=ONE)
    caller = at_work if here else await engine(config=ONE)
    for _ in range(2):
        began.clear()
        go_on.clear()
        handle = await caller.client.start_workflow(slow)
        await asyncio.wait_for(began.wait(), 20)
        if how == "terminate":
            await handle.terminate()
        else:
            handle = await handle.reset(to_event=1)
        go_on.set()
        if how == "reset":
            await waiting(handle)
            await handle.terminate()

        other = await caller.client.start_workflow(quick)
        assert "done" == await other.result(timeout=20)
        assert WorkflowStatus.TERMINATED == await handle.status()
        (session,) = at_work._local.dispatcher.sessions.values()
        await until(partial(_free, session))


async def test_a_session_is_open_though_its_first_look_for_work_has_failed(engine, monkeypatch):
    """A worker that is told otherwise would open another one, and this one be given work that nobody does."""
    running = await engine()
    local = running._local

    async def busy():
        raise StorageBusy("another process writes")

    monkeypatch.setattr(local.upkeep, "claim", busy)
    request = wk.RegisterWorker(
        org="default", session="s", host="h", pid=1, builds={("k", "1"): "b"}, turn_slots=1, task_slots=1, lease_s=60.0
    )
    await local.workers.register(request)
    assert "s" in local.dispatcher.sessions


async def _free(session):
    return (1, set()) == (session.free_turns, session.held)
