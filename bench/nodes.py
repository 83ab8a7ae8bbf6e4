"""Two worker processes against one: how much more work they do on the same database.

A backlog is there before any worker is: workflows of one step, of one task, and of one step that waits. The workers
begin together, and the rate is that of what they record in the database, without the first and the last tenth. Steps
that do nothing measure the processors, which workers and server share: two workers can't be faster than the machine,
and how many processors were busy with one says how much more there is to be had. Steps that wait, few at a time on each
worker, leave some of them free: there two workers show whether one gets in the other's way.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from typing import Any

from bench.figures import Figure
from bench.load import by_callers
from bench.meters import Processors
from bench.server import connected
from bench.setting import Setting, config
from bench.throughput import increment_task, one_step, one_task
from holdfast import Client, Engine, Status, WorkflowContext, workflow

FULL = {"one_step": 20_000, "one_task": 10_000, "waiting": 8_000, "slots_of_waiting": 20}
QUICK = {"one_step": 1_500, "one_task": 800, "waiting": 400, "slots_of_waiting": 20}

_WAIT_S = 0.005
_LONGER_WAIT_S = 0.02
_LOOK_S = 0.5
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
                at_least=1.5,
                of_ratio=True,
            ),
            Figure(
                name=f"{name}, processors busy with two workers",
                figure=full,
                unit="processors",
                yardstick=busy,
                yardstick_name="with one worker",
            ),
        ]
    return figures


def _drain(url: str, flow: Callable[..., Any], count: int, workers: int, slots: int) -> tuple[float, float]:
    """Workflows per second, and how many processors were busy. By the moments at which the workers have recorded
    anything: where each workflow has several turns, all first ones may come before any last one."""
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
        with Processors() as processors:
            go.set()
            asyncio.run(_until_closed(url, count))
    finally:
        enough.set()
        for process in processes:
            process.join(_PATIENCE_S)
    return asyncio.run(connected(url, _rate)), processors.busy


async def _fill(url: str, flow: Callable[..., Any], count: int) -> None:
    async with _worker(url, _TURN_SLOTS):
        pass  # a kind has to be known before it can be started
    async with Engine(url, config=config()) as engine:
        client: Client = engine.client
        await by_callers(500, count, lambda number: client.start_workflow(flow, number))


async def _until_closed(url: str, count: int) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    async with Engine(url, config=config()) as engine:
        while (await engine.client.count_workflows()).get(Status.COMPLETED, 0) < count:
            if time.monotonic() > give_up_at:
                raise TimeoutError("the workers do not get done")
            await asyncio.sleep(_LOOK_S)


async def _rate(connection: Any) -> float:
    sql = "SELECT at FROM holdfast_events WHERE seq > 1 ORDER BY at"
    moments = [row[0] for row in await connection.fetch(sql)]
    first, last = len(moments) // 10, len(moments) * 9 // 10
    per_workflow = len(moments) / await connection.fetchval("SELECT count(*) FROM holdfast_executions")
    return float((last - first) / per_workflow / ((moments[last] - moments[first]) / 1e6))


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
