"""From a signal to the reaction of the workflow's code, and signal-with-starts per second.

Latency: one signal at a time to a random one of the waiting workflows, each sent when the one before has come to
rest; and again back to back, where a signal meets the commit of the turn before. Rate: many callers over many
workflow ids (the first call of an id starts it), all on new ids, all on one id.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from bench.figures import Figure, percentile
from bench.listening import EAR, listener
from bench.load import by_callers
from bench.meters import Stopwatch
from bench.setting import Setting, config
from bench.throughput import processor_time
from holdfast import Client, Engine, WorkflowHandle

FULL = {
    "workflows": 100,
    "samples": 1_500,
    "rest_s": 0.005,
    "callers": 256,
    "calls": 15_000,
    "ids": 1_500,
    "calls_on_new_ids": 5_000,
    "calls_on_one_id": 5_000,
    "commits": 500,
}
QUICK = FULL | {
    "samples": 200,
    "calls": 3_000,
    "ids": 300,
    "calls_on_new_ids": 1_000,
    "calls_on_one_id": 1_000,
    "commits": 100,
}


def run(setting: Setting) -> list[Figure]:
    commit_ms = setting.commit_seconds(setting["commits"]) / setting["commits"] * 1e3
    spaced, close = asyncio.run(_latencies(setting))
    over_ids, new_ids, one_id = asyncio.run(_rates(setting))
    return [
        Figure(
            name="signal to reaction, p50",
            figure=percentile(spaced, 50),
            unit="ms",
            yardstick=commit_ms,
            yardstick_name="bare commit, ms",
            at_most=setting.aim(3.0, postgres=6.0),
        ),
        Figure(name="signal to reaction, p99", figure=percentile(spaced, 99), unit="ms", at_most=setting.aim(15.0)),
        Figure(name="back to back, p50", figure=percentile(close, 50), unit="ms"),
        Figure(name="back to back, p99", figure=percentile(close, 99), unit="ms"),
        Figure(
            name="signal-with-start over many ids",
            figure=setting["calls"] / over_ids.seconds,
            unit="calls/s",
            at_least=setting.aim(6_000, postgres=4_000),
        ),
        Figure(
            name="signal-with-start, new ids only", figure=setting["calls_on_new_ids"] / new_ids.seconds, unit="calls/s"
        ),
        Figure(name="signal-with-start on one id", figure=setting["calls_on_one_id"] / one_id.seconds, unit="calls/s"),
        *processor_time(over_ids, setting["calls"], "signal-with-start"),
    ]


async def _latencies(setting: Setting) -> tuple[list[float], list[float]]:
    async with Engine(setting.url("latency"), workflows=[listener], config=config()) as engine:
        handles = await asyncio.gather(*(engine.client.start_workflow(listener) for _ in range(setting["workflows"])))
        await _reactions(handles, 100, 0.0)
        spaced = await _reactions(handles, setting["samples"], setting["rest_s"])
        setting.tell(f"p50 {percentile(spaced, 50):.2f} ms, p99 {percentile(spaced, 99):.2f} ms")
        close = await _reactions(handles, setting["samples"], 0.0)
        setting.tell(f"back to back: p50 {percentile(close, 50):.2f} ms, p99 {percentile(close, 99):.2f} ms")
        return spaced, close


async def _reactions(handles: list[WorkflowHandle], samples: int, rest_s: float) -> list[float]:
    """Milliseconds from signal to reaction, one after another."""
    chance = random.Random(1)
    found = []
    for number in range(samples):
        found.append(await EAR.reaction_s(chance.choice(handles), number) * 1e3)
        if rest_s:
            await asyncio.sleep(rest_s)
    return found


async def _rates(setting: Setting) -> tuple[Stopwatch, Stopwatch, Stopwatch]:
    async with Engine(setting.url("rate"), workflows=[listener], config=config()) as engine:
        client = engine.client
        ids, callers = setting["ids"], setting["callers"]
        await _call(client, callers, 500, lambda number: f"warm-up-{number % 50}")
        over_ids = await _call(client, callers, setting["calls"], lambda number: f"many-{number * 7919 % ids}")
        setting.tell(f"{setting['calls'] / over_ids.seconds:,.0f} calls/s over {ids} ids")
        new_ids = await _call(client, callers, setting["calls_on_new_ids"], lambda number: f"new-{number}")
        setting.tell(f"{setting['calls_on_new_ids'] / new_ids.seconds:,.0f} calls/s on new ids")
        one_id = await _call(client, callers, setting["calls_on_one_id"], lambda _: "one")
        setting.tell(f"{setting['calls_on_one_id'] / one_id.seconds:,.0f} calls/s on one id")
        return over_ids, new_ids, one_id


async def _call(client: Client, callers: int, total: int, workflow_id: Callable[[int], str]) -> Stopwatch:
    """Timed until all calls are answered; returns when the workflows have taken all of it in.

    `workflow_id` gives the id for the call's number.
    """
    before = EAR.seen

    async def call(number: int) -> None:
        await client.signal_with_start_workflow(
            workflow_id(number), listener, signal_name="ping", signal_value=-number - 2
        )

    watch = await by_callers(callers, total, call)
    while EAR.seen - before < total:
        await asyncio.sleep(0.005)
    return watch
