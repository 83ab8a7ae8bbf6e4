"""Pages of executions out of a million: newest first, by every filter there is, near the top and deep down.

Nine in ten executions are closed, one in a hundred failed; ten kinds, a hundred orgs of which one has half of all, and
a tag on each fifth. Copied in, then listed through the client of an engine without a worker.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.claiming import prepare
from bench.figures import Figure, percentile
from bench.loading import HEAD, copy, head, ids
from bench.setting import Setting, config
from holdfast import Client, Engine

FULL = {"executions": 1_000_000, "samples": 50, "page": 100}
QUICK = {"executions": 20_000, "samples": 10, "page": 100}

TAG = ["org", "key", "value", "execution_id"]
_SPAN_S = 30 * 24 * 3600


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_run(setting))


async def _run(setting: Setting) -> list[Figure]:
    url, count = setting.url(), setting["executions"]
    await prepare(url)
    began = time.perf_counter()
    middle = await _fill(url, count)
    setting.tell(f"{count:,} executions copied in {time.perf_counter() - began:.0f} s")
    async with Engine(url, config=config()) as engine:
        found = await _measure(engine.client, setting, middle)
    setting.tell(", ".join(f"{name} {ms:.1f} ms" for name, ms in found.items()))
    most_ms = setting.aim(100.0, postgres=50.0)
    return [
        Figure(name=f"{name}, p50", figure=ms, unit="ms", at_most=None if name == "counted by status" else most_ms)
        for name, ms in found.items()
    ]


async def _measure(client: Client, setting: Setting, middle: datetime) -> dict[str, float]:
    page = setting["page"]
    small = client.list_workflows
    asked: dict[str, Callable[[], Awaitable[Any]]] = {
        "newest": lambda: small(limit=page),
        "open": lambda: small(status="WAITING", limit=page),
        "failed": lambda: small(status="FAILED", limit=page),
        "of a kind": lambda: small(kind="kind-3", limit=page),
        "failed of a kind": lambda: small(kind="kind-3", status="FAILED", limit=page),
        "by tag": lambda: small(metadata={"customer": "c-7"}, limit=page),
        "by tag and status": lambda: small(metadata={"customer": "c-7"}, status="FAILED", limit=page),
        "by workflow id": lambda: small(workflow_id="order-4000", limit=page),
        "of an hour": lambda: small(created_from=middle, created_before=middle + timedelta(hours=1), limit=page),
        "deep down": lambda: small(created_before=middle, limit=page),
        "counted by status": client.count_workflows,
    }
    return {name: await _p50_ms(call, setting["samples"]) for name, call in asked.items()}


async def _p50_ms(call: Callable[[], Awaitable[Any]], samples: int) -> float:
    took = []
    for _ in range(samples):
        began = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began) * 1e3)
    return percentile(took, 50)


async def _fill(url: str, count: int) -> datetime:
    """All of them; a moment in the middle of their time."""
    first_us = time.time_ns() // 1000 - _SPAN_S * 1_000_000
    every_us = _SPAN_S * 1_000_000 // count
    heads, tags = _heads(count, first_us, every_us), _tags(count, first_us, every_us)
    if url.startswith("sqlite"):
        _insert(url, heads, tags)
    else:
        await _copy(url, heads, tags)
    return datetime.fromtimestamp(first_us / 1e6 + _SPAN_S / 2, UTC)


async def _copy(url: str, heads: Iterator[tuple[Any, ...]], tags: Iterator[tuple[Any, ...]]) -> None:
    import asyncpg  # noqa: PLC0415 - SQLite does without

    connection = await asyncpg.connect(url)
    try:
        await copy(connection, "holdfast_executions", HEAD, heads)
        await copy(connection, "holdfast_metadata", TAG, tags)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


def _insert(url: str, heads: Iterator[tuple[Any, ...]], tags: Iterator[tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        for table, columns, rows in (("holdfast_executions", HEAD, heads), ("holdfast_metadata", TAG, tags)):
            places = ", ".join("?" * len(columns))
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
            connection.executemany(sql, rows)
        connection.commit()


def _heads(count: int, first_us: int, every_us: int) -> Iterator[tuple[Any, ...]]:
    for number, (key, at) in enumerate(ids(count, first_us, every_us)):
        state = "OPEN" if number % 10 == 0 else "FAILED" if number % 100 == 1 else "COMPLETED"
        row = head(
            key,
            at,
            kind=f"kind-{number // 10 % 10}",
            version="1",
            org=_org(number),
            state=state,
            workflow_id=f"order-{number}" if number % 2 == 0 else None,
        )
        yield (*row[:-2], json.dumps({"customer": _customer(number)}) if number % 10 < 2 else None, row[-1])


def _tags(count: int, first_us: int, every_us: int) -> Iterator[tuple[Any, ...]]:
    for number, (key, _) in enumerate(ids(count, first_us, every_us)):
        if number % 10 < 2:
            yield _org(number), "customer", _customer(number), key


def _org(number: int) -> str:
    return "default" if number // 3 % 2 == 0 else f"org-{number % 99}"


def _customer(number: int) -> str:
    return f"c-{number // 7 % 1000}"
