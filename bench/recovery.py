"""After kill -9: the time until every workflow has gone on; and reading a long history back in.

A process with many workflows is killed: one half waits for a signal, the other half is inside a step. Then an engine
is opened on the same database and the waiting half is signalled. The interrupted half goes on when the dead session's
lease has run out (a parameter, shorter here than by default), so its figure contains that wait.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from statistics import median

from bench.figures import Figure
from bench.listening import EAR
from bench.setting import Setting, config
from holdfast import Engine, EngineConfig, WorkflowContext, WorkflowStatus, workflow

FULL = {"workflows": 1_000, "lease_s": 3.0, "history_events": 10_000, "warm_samples": 50}
QUICK = {"workflows": 200, "lease_s": 1.5, "history_events": 1_000, "warm_samples": 10}

_stalling = False


async def stall(number: int) -> int:
    """Never ends in the process that is killed."""
    if _stalling:
        await asyncio.sleep(3600)
    return number


@workflow
async def wait_for_go(ctx: WorkflowContext, number: int) -> int:
    return await ctx.wait_for_signal("go", int) + number


@workflow
async def inside_a_step(ctx: WorkflowContext, number: int) -> int:
    return await ctx.run(stall, number)


@workflow
async def long_story(ctx: WorkflowContext, steps: int) -> None:
    for number in range(steps):
        await ctx.run(stall, number)
    while True:
        EAR.saw(await ctx.wait_for_signal("ping", int))


def run(setting: Setting) -> list[Figure]:
    victim(setting)
    waiting_s, interrupted_s = asyncio.run(_restart(setting))
    setting.tell(f"after kill -9: waiting ones {waiting_s:.2f} s, interrupted ones {interrupted_s:.2f} s")
    reload_s, events = asyncio.run(_reload(setting))
    setting.tell(f"a history of {events} events is back in {reload_s:.2f} s")
    lease_s = setting["lease_s"]
    return [
        Figure(name="history read back in", figure=reload_s, unit="s", at_most=1.0),
        Figure(name="events in it", figure=events, unit="events"),
        Figure(name="waiting ones, from restart", figure=waiting_s, unit="s"),
        Figure(
            name="interrupted ones, from restart",
            figure=interrupted_s,
            unit="s",
            yardstick=lease_s,
            yardstick_name="lease, s",
        ),
    ]


# --- killed ---


def victim(setting: Setting) -> None:
    """Let another process start everything, and kill it."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_live, args=(setting.url(), setting["workflows"], setting["lease_s"], theirs))
    process.start()
    try:
        if not ours.poll(120):
            raise TimeoutError("the process to be killed did not get ready")
        ours.recv()
    finally:
        process.kill()
        process.join()


def _live(url: str, workflows: int, lease_s: float, ready: Connection) -> None:
    global _stalling  # noqa: PLW0603 - this process is the one whose steps never end
    _stalling = True
    asyncio.run(_live_until_killed(url, workflows, lease_s, ready))


def _engine(url: str, configuration: EngineConfig) -> Engine:
    return Engine(url, workflows=[wait_for_go, inside_a_step, long_story], config=configuration)


async def _live_until_killed(url: str, workflows: int, lease_s: float, ready: Connection) -> None:
    async with _engine(url, config(lease_s=lease_s)) as engine:
        client = engine.client
        half = workflows // 2
        await asyncio.gather(
            *(client.start_workflow(wait_for_go, n, workflow_id=f"waiting-{n}") for n in range(half)),
            *(client.start_workflow(inside_a_step, n, workflow_id=f"inside-{n}") for n in range(half)),
        )
        while (await client.count_workflows()).get(WorkflowStatus.WAITING, 0) < half:
            await asyncio.sleep(0.02)
        ready.send("ready")
        await asyncio.sleep(3600)


async def _restart(setting: Setting) -> tuple[float, float]:
    """Seconds until all waiting ones have gone on, and all interrupted ones."""
    half = setting["workflows"] // 2
    began = time.perf_counter()

    async with _engine(setting.url(), config(lease_s=setting["lease_s"])) as engine:
        client = engine.client

        async def signalled(number: int) -> None:
            handle = await client.find_workflow(f"waiting-{number}")
            await handle.signal("go", 1)
            assert await handle.result() == number + 1

        async def interrupted(number: int) -> None:
            assert await (await client.find_workflow(f"inside-{number}")).result() == number

        async def took(work: asyncio.Future[list[None]]) -> float:
            await work
            return time.perf_counter() - began

        return await asyncio.gather(
            took(asyncio.gather(*(signalled(number) for number in range(half)))),
            took(asyncio.gather(*(interrupted(number) for number in range(half)))),
        )


# --- reloaded ---


async def _reload(setting: Setting) -> tuple[float, int]:
    """What the first reaction after a restart takes longer than the later ones, and how long the history is."""
    async with _engine(setting.url("story"), config()) as engine:
        steps = setting["history_events"] - 2
        handle = await engine.client.start_workflow(long_story, steps, workflow_id="story")
        while await handle.status() is not WorkflowStatus.WAITING:
            await asyncio.sleep(0.02)
        events = (await handle.history())[-1].seq
    async with _engine(setting.url("story"), config()) as engine:
        handle = await engine.client.find_workflow("story")
        cold_s = await EAR.reaction_s(handle, 0)
        warm = [await EAR.reaction_s(handle, number) for number in range(1, setting["warm_samples"] + 1)]
        return cold_s - median(warm), events
