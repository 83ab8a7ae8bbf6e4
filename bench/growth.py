"""What an operation leaves and costs on PostgreSQL: rows, bytes, WAL, transactions, statements, round trips.

None of it depends on how fast the machine is. Each operation is done by many callers at once, as under load, and by one
alone, where nothing shares a transaction. WAL is taken within one checkpoint's time, so without the page images that
follow a checkpoint; statements and round trips are those of the node that does both, calls and turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from bench.figures import Figure
from bench.listening import EAR, listener
from bench.load import by_callers, until_waiting
from bench.server import table_bytes
from bench.setting import Setting, config
from bench.steps import many_steps
from bench.throughput import increment_task, one_step, one_task
from bench.wire import Wire
from holdfast import Client, Engine, WorkflowContext, workflow

FULL = {"callers": 256, "operations": 10_000, "alone": 100}
QUICK = {"callers": 256, "operations": 1_000, "alone": 20}

STEPS = 100
Operation = Callable[[Client, int], Awaitable[object]]


@workflow
async def one_sleep(ctx: WorkflowContext) -> None:
    await ctx.sleep(0.01)


@workflow
async def one_promise(ctx: WorkflowContext) -> None:
    await ctx.promise("answer")


async def _step(client: Client, number: int) -> None:
    await (await client.start_workflow(one_step, number)).result()


async def _task(client: Client, number: int) -> None:
    await (await client.start_workflow(one_task, number)).result()


async def _sleep(client: Client, _: int) -> None:
    await (await client.start_workflow(one_sleep)).result()


async def _promise(client: Client, _: int) -> None:
    handle = await client.start_workflow(one_promise)
    await client.resolve_promise(f"{handle.id}:answer", 1, allow_early=True)
    await handle.result()


async def _start(client: Client, _: int) -> None:
    await client.start_workflow(listener)


async def _steps(client: Client, _: int) -> None:
    await (await client.start_workflow(many_steps, STEPS)).result()


# Name, operation, and how many of the named thing one call makes.
OPERATIONS: tuple[tuple[str, Operation, int], ...] = (
    ("one-step workflow", _step, 1),
    ("one-task workflow", _task, 1),
    ("workflow with one sleep", _sleep, 1),
    ("workflow with one promise", _promise, 1),
    ("waiting workflow", _start, 1),
    (f"step of a workflow of {STEPS}", _steps, STEPS),
)


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_run(setting))


async def _run(setting: Setting) -> list[Figure]:
    figures = []
    for number, (name, operation, each) in enumerate(OPERATIONS):
        figures += await _measure(setting, f"operation_{number}", name, operation, each)
    return figures + await _signals(setting)


def _engine(url: str) -> Engine:
    workflows: list[Callable[..., Any]] = [one_step, one_task, one_sleep, one_promise, listener, many_steps]
    return Engine(url, workflows=workflows, tasks=[increment_task], config=config())


async def _measure(setting: Setting, database: str, name: str, operation: Operation, each: int) -> list[Figure]:
    calls, alone = max(setting["operations"] // each, 10), setting["alone"] if each == 1 else 1
    async with Wire(setting.url(database)) as wire, _engine(wire.url) as engine:
        client = engine.client
        await by_callers(50, 50, lambda number: operation(client, number))
        meter = await Meter.begin(setting.url(database), wire)
        await by_callers(setting["callers"], calls, lambda number: operation(client, number))
        if operation is _start:
            await until_waiting(client, calls + 50)
        together = await meter.end(calls * each)
        meter = await Meter.begin(setting.url(database), wire)
        await by_callers(1, alone, lambda number: operation(client, number))
        by_itself = await meter.end(alone * each)
    return _report(setting, name, together, by_itself)


async def _signals(setting: Setting) -> list[Figure]:
    """A signal to a workflow that waits for it, until it has taken it in."""
    url = setting.url("signals")
    async with Wire(url) as wire, _engine(wire.url) as engine:
        handles = await asyncio.gather(*(engine.client.start_workflow(listener) for _ in range(100)))
        await until_waiting(engine.client, 100)
        total = setting["operations"]
        meter = await Meter.begin(url, wire)
        seen = EAR.seen
        await by_callers(setting["callers"], total, lambda number: handles[number % 100].signal("ping", -2))
        while EAR.seen - seen < total:
            await asyncio.sleep(0.01)
        await until_waiting(engine.client, 100)
        together = await meter.end(total)
        meter = await Meter.begin(url, wire)
        for number in range(setting["alone"]):
            await EAR.reaction_s(handles[number % 100], number)
        return _report(setting, "signal and reaction", together, await meter.end(setting["alone"]))


@dataclass(frozen=True, slots=True)
class Meter:
    """The database as it was; `end` says what each operation since then has added."""

    connection: Any
    wire: Wire
    sizes: dict[str, tuple[int, int]]
    rows: dict[str, int]
    lsn: Any
    commits: int

    @staticmethod
    async def begin(url: str, wire: Wire) -> Meter:
        connection = await asyncpg.connect(url)
        sizes = await table_bytes(connection)
        rows = await _count_rows(connection)
        lsn = await connection.fetchval("SELECT pg_current_wal_insert_lsn()")
        commits = await _count_commits(connection)
        wire.reset()
        return Meter(connection, wire, sizes, rows, lsn, commits)

    async def end(self, count: int) -> dict[str, Any]:
        """Each per operation."""
        traffic = self.wire.reset()
        wal = await self.connection.fetchval("SELECT pg_current_wal_insert_lsn() - $1::pg_lsn", self.lsn)
        commits = await _count_commits(self.connection) - self.commits
        rows = await _count_rows(self.connection)
        sizes = await table_bytes(self.connection)
        await self.connection.close()
        return {
            "rows": {name: (rows[name] - self.rows[name]) / count for name in rows if rows[name] > self.rows[name]},
            "table bytes": sum(size[0] - self.sizes[name][0] for name, size in sizes.items()) / count,
            "index bytes": sum(size[1] - self.sizes[name][1] for name, size in sizes.items()) / count,
            "WAL bytes": int(wal) / count,
            "transactions": commits / count,
            "statements": traffic.statements / count,
            "round trips": traffic.round_trips / count,
        }


async def _count_rows(connection: Any) -> dict[str, int]:
    tables = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
        "AND relname LIKE 'holdfast%'"
    )
    return {
        name.removeprefix("holdfast_"): await connection.fetchval(f"SELECT count(*) FROM {name}") for (name,) in tables
    }


async def _count_commits(connection: Any) -> int:
    """Transactions that were written: each leaves its number in its writer's row."""
    return int(await connection.fetchval("SELECT coalesce(sum(batch), 0) FROM holdfast_writers"))


def _report(setting: Setting, name: str, together: dict[str, Any], alone: dict[str, Any]) -> list[Figure]:
    rows = ", ".join(f"{count:.3g} {table}" for table, count in together["rows"].items())
    setting.tell(
        f"{name}: rows {rows}; {together['table bytes']:.0f} + {together['index bytes']:.0f} bytes; "
        f"alone {alone['transactions']:.2f} transactions, {alone['statements']:.1f} statements"
    )
    units = ("table bytes", "index bytes", "WAL bytes")
    return [
        Figure(name=f"{name}: rows", figure=sum(together["rows"].values()), unit="rows"),
        *(Figure(name=f"{name}: {unit}", figure=together[unit], unit="bytes") for unit in units),
        Figure(name=f"{name}: statements, many callers", figure=together["statements"], unit="statements"),
        Figure(name=f"{name}: transactions, many callers", figure=together["transactions"], unit="transactions"),
        Figure(name=f"{name}: WAL bytes, alone", figure=alone["WAL bytes"], unit="bytes"),
        Figure(name=f"{name}: transactions, alone", figure=alone["transactions"], unit="transactions"),
        Figure(name=f"{name}: round trips, alone", figure=alone["round trips"], unit="round trips"),
    ]
