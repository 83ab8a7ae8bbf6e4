"""What a turn costs with a long history behind it, against a short one, for cached programs: the same, it should be.

Processor time of the whole process per signal and reaction. Short and long take turns, so that a change in the
machine's mood hits both.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.listening import EAR
from bench.meters import Stopwatch
from bench.setting import Setting, config
from holdfast import Engine, WorkflowContext, WorkflowHandle, WorkflowStatus, workflow

FULL = {"short_events": 100, "long_events": 10_000, "rounds": 10, "turns_per_round": 50}
QUICK = {"short_events": 100, "long_events": 1_000, "rounds": 4, "turns_per_round": 25}

_TOGETHER = 50


async def nothing() -> None:
    """A step that leaves an event."""


@workflow
async def grown(ctx: WorkflowContext, events: int) -> None:
    """Makes itself a history of about so many events, then listens."""
    for _ in range(events // _TOGETHER):
        await asyncio.gather(*(ctx.run(nothing) for _ in range(_TOGETHER)))
    while True:
        EAR.saw(await ctx.wait_for_signal("ping", int))


def run(setting: Setting) -> list[Figure]:
    short_us, long_us, events = asyncio.run(_measure(setting))
    setting.tell(f"{short_us:.0f} µs per turn with a short history, {long_us:.0f} µs with {events} events")
    return [
        Figure(
            name="turn with a long history",
            figure=long_us,
            unit="µs",
            yardstick=short_us,
            yardstick_name="turn with a short history, µs",
            at_most=1.25,
            of_ratio=True,
        ),
        Figure(name="events in the long history", figure=events, unit="events"),
    ]


async def _measure(setting: Setting) -> tuple[float, float, int]:
    async with Engine(setting.url(), workflows=[grown], config=config()) as engine:
        short = await engine.client.start_workflow(grown, setting["short_events"])
        long = await engine.client.start_workflow(grown, setting["long_events"])
        for handle in (short, long):
            while await handle.status() is not WorkflowStatus.WAITING:
                await asyncio.sleep(0.02)
        events = (await long.history())[-1].seq
        turns = setting["turns_per_round"]
        await _cpu_s(short, turns)
        await _cpu_s(long, turns)
        short_s = long_s = 0.0
        for _ in range(setting["rounds"]):
            short_s += await _cpu_s(short, turns)
            long_s += await _cpu_s(long, turns)
        count = setting["rounds"] * turns
        return short_s / count * 1e6, long_s / count * 1e6, events


async def _cpu_s(handle: WorkflowHandle, turns: int) -> float:
    with Stopwatch() as watch:
        for number in range(turns):
            await EAR.reaction_s(handle, number)
    return watch.cpu_s
