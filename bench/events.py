"""Events matched to one of many waits with filters of their own, per second.

Thousands of workflows wait under one key, each for `input.order == "o…" && input.amount > 10` with an order of its own.
Every event is for one of them. Matching: no worker is there, so that publishing is all that is done. Reacting: with the
workflows' own worker in the same process, until all of them have ended.
"""

from __future__ import annotations

import asyncio
import time

from bench.figures import Figure
from bench.load import by_callers, until_waiting
from bench.setting import Setting, config
from holdfast import Client, Engine, WorkflowContext, workflow

FULL = {"waits": 10_000, "events": 5_000, "callers": 256}
QUICK = {"waits": 1_000, "events": 400, "callers": 64}


@workflow
async def wait_for_order(ctx: WorkflowContext, order: str) -> int:
    where = f'input.order == "{order}" && input.amount > 10'
    return int((await ctx.wait_for_event("order", where=where))["amount"])


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_run(setting))


async def _run(setting: Setting) -> list[Figure]:
    waits, events = setting["waits"], setting["events"]
    async with _engine(setting) as engine:
        await by_callers(
            setting["callers"],
            waits,
            lambda n: engine.client.start_workflow(wait_for_order, f"o{n}", workflow_id=f"{n}"),
        )
        await until_waiting(engine.client, waits)
    async with Engine(setting.url(), config=config()) as engine:
        matching_s = await _publish(engine.client, setting, 0, events)
        setting.tell(f"{events / matching_s:,.0f} events/s matched to one of {waits:,} waits")
    async with _engine(setting) as engine:
        # Those that were matched above have their turn first.
        await until_waiting(engine.client, waits - events)
        began = time.perf_counter()
        await _publish(engine.client, setting, events, waits)
        while await _open(engine.client):
            await asyncio.sleep(0.01)
        reacting_s = time.perf_counter() - began
    setting.tell(f"{(waits - events) / reacting_s:,.0f} events/s, until the workflows have ended")
    return [
        Figure(name="events matched", figure=events / matching_s, unit="events/s", at_least=setting.aim(4_000)),
        Figure(name="events matched and acted on", figure=(waits - events) / reacting_s, unit="events/s"),
    ]


def _engine(setting: Setting) -> Engine:
    return Engine(setting.url(), workflows=[wait_for_order], config=config())


async def _publish(client: Client, setting: Setting, first: int, last: int) -> float:
    async def publish(number: int) -> None:
        # A large prime step: neighbours in time are not neighbours in the database.
        order = first + number * 7919 % (last - first)
        answer = await client.publish_event("order", {"order": f"o{order}", "amount": 11, "note": "x" * 100})
        assert answer.delivered == 1, f"order {order} was delivered {answer.delivered} times"

    watch = await by_callers(setting["callers"], last - first, publish)
    return watch.seconds


async def _open(client: Client) -> int:
    return sum(number for status, number in (await client.count_workflows()).items() if status.is_open)
