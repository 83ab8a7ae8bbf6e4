"""Two engines on one file, families of workflows, and callers who signal, reset, fork, retry, cancel and terminate
whatever they find. In the end everything has ended, nothing is stuck, and no invariant is violated."""

import asyncio
import random
from contextlib import suppress

import pytest

from holdfast import RetryPolicy, WorkflowContext, WorkflowStatus, task, workflow
from holdfast.engine.rules.resets import points
from holdfast.errors import Conflict, InvalidResetPoint
from tests.conftest import until
from tests.unit.engine.records import check_all

CALLS = ("signal", "signal", "signal", "reset", "reset", "fork", "retry", "cancel", "terminate")


@task(retry=RetryPolicy(max_attempts=2, initial_interval_s=0.001))
async def work(number: int) -> int:
    await asyncio.sleep(0)
    if number % 7 == 3:
        raise ValueError(number)
    return number


@workflow
async def kid(ctx: WorkflowContext, number: int) -> int:
    await ctx.task(work, number)
    if number % 3 == 0:
        await ctx.wait_for_signal("go")
    return number


@workflow
async def ear(ctx: WorkflowContext) -> None:
    while await ctx.wait_for_signal("heard", int) >= 0:
        pass


@workflow
async def anything(ctx: WorkflowContext, seed: int) -> list:
    chance = random.Random(seed)
    seen: list = []
    kids = []
    for number in range(12):
        match chance.randrange(8):
            case 0:
                seen.append(await ctx.run(abs, -number))
            case 1:
                seen.append(await settled(ctx.task(work, number)))
            case 2:
                await ctx.sleep(chance.random() / 100)
            case 3:
                seen.append(await ctx.wait_for_signal("go", int))
            case 4:
                kids.append(ctx.child(kid, number))
            case 5:
                seen.append(type(await settled(ctx.signal_external_workflow("ear", "heard", number))).__name__)
            case 6:
                seen += await asyncio.gather(ctx.task(work, 1), ctx.run(abs, number), ctx.sleep(0.001))
            case 7:
                ctx.set_metadata(at=str(number))
                seen.append(ctx.random.random())
    return [*seen, *[await settled(born) for born in kids]]


async def settled(future):
    try:
        return await future
    except Exception as error:
        return type(error).__name__


async def meddle(clients, chance):
    for _ in range(40):
        await asyncio.sleep(chance.random() / 100)
        client = chance.choice(clients)
        found = [view for view in (await client.list_workflows(limit=500)).items if view.kind != "ear"]
        handle = client.workflow(chance.choice(found).workflow_execution_id)
        call = chance.choice(CALLS)
        try:
            if call == "signal":
                await handle.signal("go", 1)
            elif call in {"reset", "fork"}:
                point = chance.choice(points(await handle.history()))
                await getattr(handle, call)(point, reapply_signals=chance.random() < 0.7)
            else:
                await getattr(handle, call)()
        except (Conflict, InvalidResetPoint):
            pass  # closed by now, in use, or a child that can't be shared


async def all_ended(client):
    """Whoever still waits for a signal gets one."""
    opened = [view for view in (await client.list_workflows(limit=500)).items if view.status.is_open]
    for view in opened:
        assert WorkflowStatus.STUCK != view.status, view.stuck
        with suppress(Conflict):
            await client.signal_workflow(view.workflow_execution_id, "heard" if view.kind == "ear" else "go", -1)
    return not opened


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_redone_everything_ends(engine, seed):
    """See the module's text."""
    chance = random.Random(seed)
    engines = [await engine(workflows=[anything, kid, ear], tasks=[work]) for _ in range(2)]
    clients = [running.client for running in engines]
    await clients[0].start_workflow(ear, workflow_id="ear")
    for number in range(12):
        await clients[number % 2].start_workflow(
            anything, seed * 100 + number, workflow_id=f"w-{number}" if number % 2 else None, execution_timeout=3600
        )
    await asyncio.gather(*(meddle(clients, random.Random(chance.random())) for _ in range(3)))

    await until(lambda: all_ended(clients[0]), timeout=60)
    await check_all(engines[0])
