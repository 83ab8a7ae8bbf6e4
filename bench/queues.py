"""A node at rest that serves 100 queues: processor time of node and server, statements per second.

Some executions wait, for signals and for timers in the far future. Time is taken on a direct connection, statements are
counted on another run through a proxy. In company: two nodes on one database, both at rest; counted is one of them.
"""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.idle import long_sleeper
from bench.listening import listener
from bench.load import by_callers, until_waiting
from bench.meters import Stopwatch
from bench.setting import Setting, config
from bench.throughput import increment_task
from bench.wire import Traffic, Wire
from holdfast import Engine

FULL = {"queues": 100, "executions": 1_000, "seconds": 60.0, "settle_s": 40.0}
QUICK = {"queues": 100, "executions": 100, "seconds": 5.0, "settle_s": 2.0}


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_measure(setting))


async def _measure(setting: Setting) -> list[Figure]:
    url = setting.url()
    await _fill(setting, url)
    node, server_s = await _rest(setting, url)
    percent, server_percent = (each / node.seconds * 100 for each in (node.cpu_s, server_s))
    setting.tell(f"{percent:.2f} % of a processor, the server {server_percent:.2f} %")
    alone = await _counted(setting, url)
    async with _engine(setting, url):
        company = await _counted(setting, url)
    seconds = setting["seconds"]
    setting.tell(f"{alone.statements / seconds:.2f} statements/s alone, {company.statements / seconds:.2f} in company")
    return [
        Figure(name="processor use of a node at rest", figure=percent, unit="% of one", at_most=1.0),
        Figure(name="processor use of its server", figure=server_percent, unit="% of one"),
        Figure(name="statements of a node at rest", figure=alone.statements / seconds, unit="1/s", at_most=2.0),
        Figure(name="round trips of a node at rest", figure=alone.round_trips / seconds, unit="1/s"),
        Figure(name="statements, two nodes, each", figure=company.statements / seconds, unit="1/s", at_most=2.0),
    ]


def _engine(setting: Setting, url: str) -> Engine:
    queues = ("default", *(f"queue-{number}" for number in range(1, setting["queues"])))
    return Engine(url, workflows=[listener, long_sleeper], tasks=[increment_task], config=config(queues=queues))


async def _fill(setting: Setting, url: str) -> None:
    async with _engine(setting, url) as engine:
        client, total = engine.client, setting["executions"]
        await by_callers(100, total, lambda number: client.start_workflow(listener if number % 2 else long_sleeper))
        await until_waiting(client, total)


async def _rest(setting: Setting, url: str) -> tuple[Stopwatch, float]:
    async with _engine(setting, url):
        await asyncio.sleep(setting["settle_s"])
        before = setting.server.cpu_s()
        with Stopwatch() as watch:
            await asyncio.sleep(setting["seconds"])
        return watch, setting.server.cpu_s() - before


async def _counted(setting: Setting, url: str) -> Traffic:
    async with Wire(url) as wire, _engine(setting, wire.url):
        await asyncio.sleep(setting["settle_s"])
        wire.reset()
        await asyncio.sleep(setting["seconds"])
        return wire.reset()
