"""Claims and looks for due work as the engine makes them, in a transaction that is undone: how long each takes, and how
a claim is planned."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from holdfast import Engine
from holdfast.store.claim_cursors import ClaimCursors
from holdfast.store.postgres.due_cursor import DueCursor
from holdfast.store.postgres.load import load
from holdfast.store.postgres.statements import statement
from holdfast.store.protocol import LoadPlan, TaskClaim, TurnClaim

KIND, VERSION, BUILD = "copied", "1", "b"
TASK_KIND = "copied_task"

_BEGIN = (
    "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; "
    "SET LOCAL jit = off"
)


async def prepare(url: str) -> None:
    """The schema."""
    async with Engine(url):
        pass


def turn_claim(queues: tuple[str, ...], limit: int = 10) -> LoadPlan:
    return LoadPlan(turn_claims=[TurnClaim("default", queues, {(KIND, VERSION): BUILD}, limit)])


def task_claim(queues: tuple[str, ...], limit: int = 10) -> LoadPlan:
    return LoadPlan(task_claims=[TaskClaim("default", queues, (TASK_KIND,), limit)])


async def claim_ms(
    connection: Any, plan: LoadPlan, samples: int, found: int | None, pause_s: float = 0.0
) -> list[float]:
    """Milliseconds of each, by one node; `found` is how many it has to find."""
    took, claim_cursors = [], ClaimCursors()
    for _ in range(samples):
        await connection.execute(_BEGIN)
        try:
            began = time.perf_counter()
            loaded = await load(connection, plan, time.time_ns() // 1000, claim_cursors)
            took.append((time.perf_counter() - began) * 1e3)
        finally:
            await connection.execute("ROLLBACK")
        claimed = len(loaded.turn_claims[0] if plan.turn_claims else loaded.task_claims[0])
        assert found is None or claimed == found, f"{claimed} claimed, not {found}"
        await asyncio.sleep(pause_s)
    return took


async def pass_ms(connection: Any, samples: int) -> list[float]:
    """Milliseconds of each look for what is due, and of the question when something is due next, by one node."""
    took, cursor, plan = [], DueCursor(), LoadPlan(due_timers=100, due_tasks=100)
    for _ in range(samples):
        now = time.time_ns() // 1000
        await connection.execute(_BEGIN)
        try:
            began = time.perf_counter()
            await load(connection, plan, now, due_from=cursor.at)
        finally:
            await connection.execute("ROLLBACK")
        await cursor.next_due_at(connection, now, now)
        took.append((time.perf_counter() - began) * 1e3)
    return took


async def plan_of_claim(connection: Any) -> str:
    """How PostgreSQL plans the claim of ten turns of one queue, and what it touched."""
    await connection.execute(_BEGIN)
    try:
        rows = await connection.fetch(
            f"EXPLAIN (ANALYZE, BUFFERS) {statement('ready', 'claimable')}",
            "default",
            "default",
            [KIND],
            [VERSION],
            [BUILD],
            time.time_ns() // 1000,
            10,
            2**31,
            2**62,
            0,
        )
    finally:
        await connection.execute("ROLLBACK")
    return "\n".join(row[0] for row in rows)
