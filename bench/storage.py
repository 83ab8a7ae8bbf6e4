"""Bytes on disk: for a completed workflow of one step, and for one that waits for a signal."""

from __future__ import annotations

import asyncio

from bench.figures import Figure
from bench.listening import listener
from bench.load import by_callers, until_waiting
from bench.setting import Setting, config
from bench.throughput import one_step
from holdfast import Engine

FULL = {"workflows": 5_000}
QUICK = {"workflows": 500}


def run(setting: Setting) -> list[Figure]:
    count = setting["workflows"]
    asyncio.run(_fill(setting, "empty", 0, 0))
    asyncio.run(_fill(setting, "completed", count, 0))
    asyncio.run(_fill(setting, "suspended", 0, count))
    empty = _bytes(setting, "empty")
    completed = (_bytes(setting, "completed") - empty) / count
    suspended = (_bytes(setting, "suspended") - empty) / count
    setting.tell(f"{completed:,.0f} bytes completed, {suspended:,.0f} bytes suspended")
    return [
        Figure(name="completed one-step workflow", figure=completed, unit="bytes"),
        Figure(name="suspended workflow", figure=suspended, unit="bytes"),
        Figure(name="empty database", figure=empty, unit="bytes"),
    ]


async def _fill(setting: Setting, name: str, completed: int, suspended: int) -> None:
    async with Engine(setting.url(name), workflows=[one_step, listener], config=config()) as engine:
        client = engine.client

        async def complete(number: int) -> None:
            await (await client.start_workflow(one_step, number)).result()

        await by_callers(100, completed, complete)
        await by_callers(100, suspended, lambda _: client.start_workflow(listener))
        await until_waiting(client, suspended)


def _bytes(setting: Setting, name: str) -> int:
    """The database and whatever lies next to it, after it was closed; on PostgreSQL, Holdfast's tables."""
    if setting.postgres is not None:
        from bench.server import ask, table_bytes  # noqa: PLC0415 - needs the driver, which SQLite does not

        return sum(map(sum, ask(setting.url(name), table_bytes).values()))
    path = setting.path(name)
    return sum(found.stat().st_size for found in path.parent.glob(f"{path.name}*"))
