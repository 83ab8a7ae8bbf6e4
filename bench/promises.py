"""From a settled promise to the reaction of the workflow's code, and settlements per second.

Latency: one settlement at a time, of the promise that a random one of the waiting workflows has made last. Rate: many
callers settle promises of many workflows, each by its id; once without, once with an idempotency key of its own.
"""

from __future__ import annotations

import asyncio
import random
import time

from bench.figures import Figure, percentile
from bench.load import by_callers
from bench.meters import Stopwatch
from bench.setting import Setting, config
from holdfast import Engine, WorkflowContext, WorkflowHandle, workflow

FULL = {"workflows": 100, "samples": 1_500, "rest_s": 0.005, "callers": 256, "calls": 6_000, "commits": 500}
QUICK = FULL | {"samples": 150, "calls": 800, "commits": 100}


class Reactions:
    """When the code of a workflow in this process has got a value. Not deterministic, and harmless: see listening."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self.seen = 0

    def expect(self, promise_id: str) -> asyncio.Future[float]:
        future = self._waiting[promise_id] = asyncio.get_running_loop().create_future()
        return future

    def saw(self, promise_id: str) -> None:
        self.seen += 1
        future = self._waiting.pop(promise_id, None)
        if future is not None and not future.done():
            future.set_result(time.perf_counter())


REACTIONS = Reactions()


@workflow
async def asking(ctx: WorkflowContext) -> None:
    """One promise after another."""
    number = 0
    while True:
        promise = ctx.promise(f"answer-{number}")
        await promise
        REACTIONS.saw(promise.id)
        number += 1


@workflow
async def asking_at_once(ctx: WorkflowContext, promises: int) -> None:
    """All of its promises at once."""
    await ctx.all([ctx.promise(f"answer-{number}") for number in range(promises)])


def run(setting: Setting) -> list[Figure]:
    commit_ms = setting.commit_seconds(setting["commits"]) / setting["commits"] * 1e3
    spaced = asyncio.run(_latencies(setting))
    plain, keyed = asyncio.run(_rates(setting))
    return [
        Figure(
            name="settlement to reaction, p50",
            figure=percentile(spaced, 50),
            unit="ms",
            yardstick=commit_ms,
            yardstick_name="bare commit, ms",
            at_most=setting.aim(3.0),
        ),
        Figure(name="settlement to reaction, p99", figure=percentile(spaced, 99), unit="ms"),
        Figure(name="settlements", figure=setting["calls"] / plain.seconds, unit="calls/s"),
        Figure(name="settlements with a key", figure=setting["calls"] / keyed.seconds, unit="calls/s"),
    ]


async def _latencies(setting: Setting) -> list[float]:
    async with Engine(setting.url("latency"), workflows=[asking], config=config()) as engine:
        client = engine.client
        handles = await asyncio.gather(*(client.start_workflow(asking) for _ in range(setting["workflows"])))
        rounds = dict.fromkeys((handle.id for handle in handles), 0)
        chance = random.Random(1)
        found = []
        for _ in range(setting["samples"] + 100):
            # By then every workflow has come to rest, and the promise is there.
            await asyncio.sleep(setting["rest_s"])
            execution_id = chance.choice(handles).id
            promise_id = f"{execution_id}:answer-{rounds[execution_id]}"
            rounds[execution_id] += 1
            reacted = REACTIONS.expect(promise_id)
            began = time.perf_counter()
            await client.resolve_promise(promise_id, 1, allow_early=True)
            found.append((await reacted - began) * 1e3)
        found = found[100:]
        setting.tell(f"p50 {percentile(found, 50):.2f} ms, p99 {percentile(found, 99):.2f} ms")
        return found


async def _rates(setting: Setting) -> tuple[Stopwatch, Stopwatch]:
    async with Engine(setting.url("rate"), workflows=[asking_at_once], config=config()) as engine:
        plain = await _settle_all(engine, setting, keyed=False)
        keyed = await _settle_all(engine, setting, keyed=True)
        return plain, keyed


async def _settle_all(engine: Engine, setting: Setting, *, keyed: bool) -> Stopwatch:
    """Timed until all calls are answered."""
    client, workflows = engine.client, setting["workflows"]
    each = -(-setting["calls"] // workflows)
    handles = await asyncio.gather(*(client.start_workflow(asking_at_once, each) for _ in range(workflows)))
    await _all_made(handles, each)

    async def call(number: int) -> None:
        promise_id = f"{handles[number % workflows].id}:answer-{number // workflows}"
        await client.resolve_promise(promise_id, number, idempotency_key=promise_id if keyed else None)

    watch = await by_callers(setting["callers"], setting["calls"], call)
    setting.tell(f"{setting['calls'] / watch.seconds:,.0f} settlements/s{' with a key' if keyed else ''}")
    return watch


async def _all_made(handles: list[WorkflowHandle], each: int) -> None:
    for handle in handles:
        while len(await handle.promises()) < each:
            await asyncio.sleep(0.005)
