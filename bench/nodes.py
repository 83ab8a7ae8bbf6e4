"""Two worker processes against one: how much more work they do on the same database.

A backlog is there before any worker is: workflows of one step, of one task, and of one step that waits. The workers
begin together; rates and busy processors are those of the stretch from the first to the last tenth of what they record,
in which all of them are at work.

Two workers are to do one and a half times as much as one until the processors are full, which workers and server share:
steps that do nothing keep two thirds of two processors busy with one worker already. Each case is judged by whichever
it comes nearer to, and both are told.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Awaitable, Callable
from multiprocessing.synchronize import Event
from typing import Any

from bench.figures import Figure
from bench.load import by_callers
from bench.meters import Reading, busy_processors
from bench.server import connected
from bench.setting import Setting, config
from bench.throughput import increment_task, one_step, one_task
from holdfast import Client, Engine, WorkflowContext, workflow

FULL = {"one_step": 50_000, "one_task": 20_000, "waiting": 10_000, "slots_of_waiting": 20}
QUICK = {"one_step": 1_500, "one_task": 800, "waiting": 400, "slots_of_waiting": 20}

_WAIT_S = 0.005
_LONGER_WAIT_S = 0.02
_LOOK_S = 0.05
_AIM = 1.5
_ALL_BUSY = 0.9 * (os.cpu_count() or 1)
_PATIENCE_S = 300.0
_TURN_SLOTS = 200


async def wait_a_moment(number: int) -> int:
    await asyncio.sleep(_WAIT_S)
    return number


@workflow
async def waiting_step(ctx: WorkflowContext, number: int) -> int:
    return await ctx.run(wait_a_moment, number)


async def wait_longer(number: int) -> int:
    await asyncio.sleep(_LONGER_WAIT_S)
    return number


@workflow
async def longer_step(ctx: WorkflowContext, number: int) -> int:
    return await ctx.run(wait_longer, number)


def run(setting: Setting) -> list[Figure]:
    figures = []
    few = setting["slots_of_waiting"]
    for name, flow, key, slots in (
        ("one-step workflows", one_step, "one_step", _TURN_SLOTS),
        ("one-task workflows", one_task, "one_task", _TURN_SLOTS),
        ("steps that wait 5 ms", waiting_step, "waiting", few),
        ("steps that wait 20 ms", longer_step, "waiting", few),
    ):
        (one, busy), (two, full) = (
            _drain(setting.url(f"{flow.__name__}_{workers}"), flow, setting[key], workers, slots) for workers in (1, 2)
        )
        setting.tell(
            f"{name}: {one:,.0f}/s by one worker with {busy:.2f} processors busy, {two:,.0f}/s by two with {full:.2f}"
        )
        figures += [
            Figure(
                name=f"{name}, two workers",
                figure=two,
                unit="workflows/s",
                yardstick=one,
                yardstick_name="by one worker",
            ),
            Figure(
                name=f"{name}, processors busy with two workers",
                figure=full,
                unit="processors",
                yardstick=busy,
                yardstick_name="with one worker",
            ),
            Figure(
                name=f"{name}, of 1.5 times as many or of nine tenths of the processors",
                figure=max(two / one / _AIM, full / _ALL_BUSY),
                unit="times",
                at_least=1.0,
            ),
        ]
    return figures


def _drain(url: str, flow: Callable[..., Any], count: int, workers: int, slots: int) -> tuple[float, float]:
    """Workflows per second, and how many processors were busy."""
    asyncio.run(_fill(url, flow, count))
    spawn = multiprocessing.get_context("spawn")
    go, enough = spawn.Event(), spawn.Event()
    ready = [spawn.Event() for _ in range(workers)]
    processes = [spawn.Process(target=_work, args=(url, slots, each, go, enough)) for each in ready]
    for process in processes:
        process.start()
    try:
        for each in ready:
            each.wait(_PATIENCE_S)
        go.set()
        return asyncio.run(connected(url, lambda connection: _watch(connection, count)))
    finally:
        enough.set()
        for process in processes:
            process.join(_PATIENCE_S)


async def _fill(url: str, flow: Callable[..., Any], count: int) -> None:
    async with _worker(url, _TURN_SLOTS):
        pass  # a kind has to be known before it can be started
    async with Engine(url, config=config()) as engine:
        client: Client = engine.client
        await by_callers(500, count, lambda number: client.start_workflow(flow, number))


async def _watch(connection: Any, count: int) -> tuple[float, float]:
    """While they work, only one execution is looked at: the last one begun, which is taken last."""
    readings = [Reading.now()]
    last = await connection.fetchval("SELECT max(id) FROM holdfast_executions")
    look = await connection.prepare("SELECT closed_at IS NOT NULL FROM holdfast_executions WHERE id = $1")
    await _until(lambda: look.fetchval(last), readings)
    rest = await connection.prepare("SELECT NOT EXISTS (SELECT FROM holdfast_executions WHERE closed_at IS NULL)")
    await _until(rest.fetchval, readings)

    # All that is recorded counts: where each workflow has several turns, all first ones may come before any last one.
    moments = [row[0] for row in await connection.fetch("SELECT at FROM holdfast_events WHERE seq > 1 ORDER BY at")]
    first, last = len(moments) // 10, len(moments) * 9 // 10
    began_s, ended_s = moments[first] / 1e6, moments[last] / 1e6
    per_workflow = len(moments) / count
    busy = busy_processors(readings, began_s, ended_s)
    return (last - first) / per_workflow / (ended_s - began_s), busy


async def _until(done: Callable[[], Awaitable[bool]], readings: list[Reading]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while not await done():
        if time.monotonic() > give_up_at:
            raise TimeoutError("the workers do not get done")
        await asyncio.sleep(_LOOK_S)
        readings.append(Reading.now())


def _work(url: str, slots: int, ready: Event, go: Event, enough: Event) -> None:
    ready.set()
    go.wait(_PATIENCE_S)
    asyncio.run(_work_until(url, slots, enough))


async def _work_until(url: str, slots: int, enough: Event) -> None:
    async with _worker(url, slots):
        await asyncio.to_thread(enough.wait, _PATIENCE_S)


def _worker(url: str, slots: int) -> Engine:
    workflows = [one_step, one_task, waiting_step, longer_step]
    return Engine(url, workflows=workflows, tasks=[increment_task], config=config(turn_slots=slots))
