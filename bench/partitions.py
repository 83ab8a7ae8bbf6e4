"""History in one table against history in partitions by time: writing, reading, and throwing away the old.

Execution ids begin with the time they were made at, so ranges of ids are ranges of time, and the primary key may stay
as it is. Both tables get the same events by the engine's own statements, spread over the partitions by the age of their
executions: most into the newest. Old history is thrown away by DELETE, and by dropping a partition.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import asyncpg

from bench.claiming import prepare
from bench.figures import Figure, percentile
from bench.loading import ids
from bench.setting import Setting
from holdfast.store.postgres.statements import statement

FULL = {"partitions": 52, "executions": 20_000, "events": 10, "at_once": 2_000, "reads": 2_000}
QUICK = {"partitions": 52, "executions": 1_000, "events": 10, "at_once": 500, "reads": 200}

_WEEK_US = 7 * 24 * 3600 * 1_000_000
_PLAIN, _PARTED = "plain", "parted"


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_run(setting))


async def _run(setting: Setting) -> list[Figure]:
    url = setting.url()
    await prepare(url)
    connection = await asyncpg.connect(url)
    try:
        first_us = time.time_ns() // 1000 - setting["partitions"] * _WEEK_US
        bounds = await _make(connection, setting["partitions"], first_us)
        keys = _keys(setting, first_us)
        inserts = await _insert_both(connection, setting, keys)
        reads = {table: await _read(connection, setting, table, keys) for table in (_PLAIN, _PARTED)}
        delete_s, drop_s = await _throw_away(connection, bounds)
    finally:
        await connection.close()
    setting.tell(
        f"inserts {inserts[_PLAIN]:.1f} and {inserts[_PARTED]:.1f} µs an event, reads {reads[_PLAIN]:.2f} and "
        f"{reads[_PARTED]:.2f} ms, a week thrown away in {delete_s * 1e3:.1f} and {drop_s * 1e3:.1f} ms"
    )
    return [
        _against("event appended, in partitions", inserts, "µs"),
        _against("history read, in partitions, p50", reads, "ms"),
        Figure(
            name="a week of history dropped",
            figure=drop_s * 1e3,
            unit="ms",
            yardstick=delete_s * 1e3,
            yardstick_name="deleted, ms",
        ),
    ]


def _against(name: str, took: dict[str, float], unit: str) -> Figure:
    return Figure(
        name=name, figure=took[_PARTED], unit=unit, yardstick=took[_PLAIN], yardstick_name=f"in one table, {unit}"
    )


async def _make(connection: Any, partitions: int, first_us: int) -> list[str]:
    """Both tables; where the partitions begin."""
    await connection.execute(f"CREATE TABLE {_PLAIN} (LIKE holdfast_events INCLUDING ALL)")
    await connection.execute(
        f"CREATE TABLE {_PARTED} (LIKE holdfast_events INCLUDING ALL) PARTITION BY RANGE (execution_id)"
    )
    bounds = [_id_of(first_us + number * _WEEK_US) for number in range(partitions + 1)]
    for number in range(partitions):
        await connection.execute(
            f"CREATE TABLE {_PARTED}_{number} PARTITION OF {_PARTED} "
            f"FOR VALUES FROM ('{bounds[number]}') TO ('{bounds[number + 1]}')"
        )
    await connection.execute(f"CREATE TABLE {_PARTED}_rest PARTITION OF {_PARTED} DEFAULT")
    return bounds


def _id_of(us: int) -> str:
    text = f"{us // 1000:012x}"
    return f"{text[:8]}-{text[8:]}"


def _keys(setting: Setting, first_us: int) -> list[str]:
    """Nine in ten are of the last week, the others of all weeks."""
    count, weeks = setting["executions"], setting["partitions"]
    old = ids(count // 10, first_us + 1_000, weeks * _WEEK_US // (count // 10 + 1))
    new = ids(count - count // 10, first_us + (weeks - 1) * _WEEK_US, _WEEK_US // count)
    return [key for key, _ in (*old, *new)]


async def _insert_both(connection: Any, setting: Setting, keys: list[str]) -> dict[str, float]:
    """Microseconds an event. Both take turns."""
    insert = statement("events", "insert")
    took = dict.fromkeys((_PLAIN, _PARTED), 0.0)
    chance = random.Random(1)
    rows = [(key, seq) for seq in range(1, setting["events"] + 1) for key in chance.sample(keys, len(keys))]
    for begin in range(0, len(rows), setting["at_once"]):
        batch = rows[begin : begin + setting["at_once"]]
        for table in took:
            began = time.perf_counter()
            await connection.execute(
                insert.replace("holdfast_events", table),
                [key for key, _ in batch],
                [seq for _, seq in batch],
                ["STEP_COMPLETED"] * len(batch),
                [1] * len(batch),
                [begin] * len(batch),
                ['{"result":"' + "x" * 100 + '"}'] * len(batch),
            )
            took[table] += time.perf_counter() - began
    await connection.execute("VACUUM ANALYZE")
    return {table: seconds / len(rows) * 1e6 for table, seconds in took.items()}


async def _read(connection: Any, setting: Setting, table: str, keys: list[str]) -> float:
    """Milliseconds for a history, p50."""
    read = await connection.prepare(
        f"SELECT seq, at, type, version, data FROM {table} "
        "WHERE execution_id = $1::text AND seq > $2::bigint ORDER BY seq"
    )
    chance = random.Random(2)
    took = []
    for _ in range(setting["reads"]):
        began = time.perf_counter()
        found = await read.fetch(chance.choice(keys), 0)
        took.append((time.perf_counter() - began) * 1e3)
        assert len(found) == setting["events"]
    return percentile(took, 50)


async def _throw_away(connection: Any, bounds: list[str]) -> tuple[float, float]:
    """The newest week of all, which is the fullest: seconds by DELETE, and by dropping its partition."""
    began = time.perf_counter()
    await connection.execute(
        f"DELETE FROM {_PLAIN} WHERE execution_id >= $1::text AND execution_id < $2::text", bounds[-2], bounds[-1]
    )
    deleted = time.perf_counter()
    await connection.execute(f"DROP TABLE {_PARTED}_{len(bounds) - 2}")
    return deleted - began, time.perf_counter() - deleted
