"""What telling other nodes costs: the throughput of a node alone, in company, and without hints.

Alone it sends no hints; with another node on the database, which is idle, one NOTIFY follows the commits of each 2 ms.
`notify=off` is what a transaction pooler asks for: it also prepares no statements, so PostgreSQL parses and plans every
one. The three take turns.
"""

from __future__ import annotations

import asyncio
from statistics import median

from bench.figures import Figure
from bench.load import by_callers
from bench.setting import Setting, config
from bench.throughput import one_step
from holdfast import Engine

FULL = {"rounds": 5, "workflows": 4_000, "callers": 256}
QUICK = {"rounds": 2, "workflows": 600, "callers": 256}


def run(setting: Setting) -> list[Figure]:
    found = asyncio.run(_measure(setting))
    alone = median(found["alone"])
    setting.tell(", ".join(f"{name} {median(rates):,.0f}/s" for name, rates in found.items()))
    return [
        Figure(
            name="one-step workflows in company, hints sent",
            figure=median(found["company"]),
            unit="workflows/s",
            yardstick=alone,
            yardstick_name="alone, none sent",
            at_least=0.95,
            of_ratio=True,
        ),
        Figure(
            name="one-step workflows with notify=off",
            figure=median(found["off"]),
            unit="workflows/s",
            yardstick=alone,
            yardstick_name="alone, hints on",
        ),
    ]


async def _measure(setting: Setting) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"alone": [], "company": [], "off": []}
    url = setting.url()
    for number in range(setting["rounds"] + 1):
        rates = {
            "alone": await _round(setting, url),
            "company": await _in_company(setting, url),
            "off": await _round(setting, f"{url}?notify=off"),
        }
        if number:  # the first one warms up
            for name, rate in rates.items():
                found[name].append(rate)
    return found


async def _in_company(setting: Setting, url: str) -> float:
    async with Engine(url, config=config()):
        return await _round(setting, url)


async def _round(setting: Setting, url: str) -> float:
    async with Engine(url, workflows=[one_step], config=config()) as engine:

        async def call(number: int) -> None:
            await (await engine.client.start_workflow(one_step, number)).result()

        await by_callers(setting["callers"], setting["callers"], call)
        watch = await by_callers(setting["callers"], setting["workflows"], call)
        return setting["workflows"] / watch.seconds
