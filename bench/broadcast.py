"""Deliveries per second of one broadcast to many waiting workflows.

Measured from the throw to its answer, which comes when the last one has it: by a process that only delivers, and by
one whose worker takes the turns of those it wakes at the same time, until the last of them is over. Messages, each for
the one who waits for its key, are sent by many callers.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.load import by_callers, until_waiting
from bench.meters import Stopwatch
from bench.setting import Setting, config
from bench.throughput import processor_time
from holdfast import Client, Engine, WorkflowContext, WorkflowStatus, workflow

FULL = {"waiting": 20_000, "messages": 10_000, "callers": 256}
QUICK = {"waiting": 2_500, "messages": 1_000, "callers": 256}


@workflow
async def waiter(ctx: WorkflowContext) -> None:
    await ctx.wait_for_broadcast("all clear")


@workflow
async def addressee(ctx: WorkflowContext, key: str) -> None:
    await ctx.wait_for_message("letter", key)


def run(setting: Setting) -> list[Figure]:
    alone, together = asyncio.run(_broadcasts(setting))
    messages = asyncio.run(_messages(setting))
    waiting = setting["waiting"]
    return [
        Figure(name="delivered", figure=waiting / alone.seconds, unit="deliveries/s", at_least=setting.aim(10_000)),
        Figure(name="delivered and run to the end", figure=waiting / together.seconds, unit="workflows/s"),
        Figure(name="messages", figure=setting["messages"] / messages.seconds, unit="messages/s"),
        *processor_time(alone, waiting, "delivery"),
    ]


async def _broadcasts(setting: Setting) -> tuple[Stopwatch, Stopwatch]:
    count = setting["waiting"]
    url = setting.url("broadcast")
    async with Engine(url, workflows=[waiter], config=config()) as engine:
        await _start(engine.client, setting)
        with Stopwatch() as together:
            assert await engine.client.broadcast("all clear") == count
            while (await engine.client.count_workflows()).get(WorkflowStatus.COMPLETED, 0) < count:
                await asyncio.sleep(0.02)
        setting.tell(f"{count / together.seconds:,.0f} workflows/s woken and run to the end")
        await _start(engine.client, setting)
    async with Engine(url, config=config()) as engine:
        with Stopwatch() as alone:
            assert await engine.client.broadcast("all clear") == count
        setting.tell(f"{count / alone.seconds:,.0f} deliveries/s")
    return alone, together


async def _start(client: Client, setting: Setting) -> None:
    await by_callers(setting["callers"], setting["waiting"], lambda _: client.start_workflow(waiter))
    await until_waiting(client, setting["waiting"])


async def _messages(setting: Setting) -> Stopwatch:
    count = setting["messages"]
    async with Engine(setting.url("messages"), workflows=[addressee], config=config()) as engine:
        client = engine.client
        await by_callers(setting["callers"], count, lambda number: client.start_workflow(addressee, f"key-{number}"))
        await until_waiting(client, count)

        async def send(number: int) -> None:
            assert await client.send_message("letter", f"key-{number}", number)

        watch = await by_callers(setting["callers"], count, send)
        setting.tell(f"{count / watch.seconds:,.0f} messages/s")
        return watch
