"""Claims and looks for due work amid very many rows that are gone and that PostgreSQL was kept from clearing away.

A transaction that reads for an hour holds back the cleaning of all tables. Meanwhile rows are put on the queue, claimed
and removed, and as many timers fire; autovacuum runs, and may take none of them. Measured is the claim of the rows that
wait now: before, with all the dead rows in the way, and after the reader has ended and autovacuum has come by itself.
Claims are made for long enough that those which look for the living rows again are among them: the mean has their
share.
"""

from __future__ import annotations

import asyncio
import time
from statistics import fmean
from typing import Any

import asyncpg

from bench.claiming import KIND, VERSION, claim_ms, pass_ms, plan_of_claim, prepare, turn_claim
from bench.figures import Figure, percentile
from bench.loading import HEAD, READY, copy, head, ids, ready
from bench.setting import Setting

FULL = {"dead": 500_000, "closed": 200_000, "at_once": 2_000, "samples": 300, "pause_s": 0.02, "patience_s": 180.0}
QUICK = {"dead": 20_000, "closed": 20_000, "at_once": 1_000, "samples": 20, "pause_s": 0.0, "patience_s": 5.0}

_WAITING = 100
_INSERT = (
    "INSERT INTO holdfast_ready (execution_id, org, queue, priority, kind, version, since_at, not_before_at, news) "
    f"SELECT 'dead-' || lpad((n + $1)::text, 12, '0'), 'default', 'default', 0, '{KIND}', '{VERSION}', $3 + n, 0, true "
    "FROM generate_series(1, $2::bigint) AS n"
)
_CLAIM = "UPDATE holdfast_ready SET worker = 'w' WHERE worker IS NULL AND execution_id LIKE 'dead-%'"
_DELETE = "DELETE FROM holdfast_ready WHERE worker = 'w'"
_SET_TIMERS = (
    "INSERT INTO holdfast_timers (execution_id, timer_no, org, fire_at) "
    "SELECT 'dead-' || lpad((n + $1)::text, 12, '0'), 1, 'default', $3 + n FROM generate_series(1, $2::bigint) AS n"
)
_FIRE_TIMERS = "DELETE FROM holdfast_timers"
_DEAD = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'holdfast_ready'"


def run(setting: Setting) -> list[Figure]:
    return asyncio.run(_run(setting))


async def _run(setting: Setting) -> list[Figure]:
    url = setting.url()
    await prepare(url)
    connection, reader = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await _fill(connection, _WAITING, setting["closed"])
        before = percentile(await _claims(connection, setting), 50)
        passes_before = percentile(await pass_ms(connection, setting["samples"]), 50)
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await reader.fetchval("SELECT count(*) FROM holdfast_ready")
        await reader.fetchval("SELECT count(*) FROM holdfast_timers")
        await _churn(connection, setting)
        claims = await _claims(connection, setting)
        amid, mean = percentile(claims, 50), fmean(claims)
        passes = await pass_ms(connection, setting["samples"])
        setting.tell(
            f"{setting['dead']:,} dead rows: {before:.2f} ms before, {amid:.2f} ms amid them, on average {mean:.2f}"
        )
        setting.tell("the plan of a claim from the beginning:\n" + await plan_of_claim(connection))
        await reader.execute("ROLLBACK")
        freed = percentile(await _claims(connection, setting), 50)
        cleared_s = await _until_cleared(connection, setting)
        after = percentile(await _claims(connection, setting), 50)
    finally:
        await reader.close()
        await connection.close()
    setting.tell(f"{freed:.2f} ms when the reader has gone, {after:.2f} ms after {cleared_s:.0f} s")
    return [
        Figure(
            name="claim amid dead rows, p50",
            figure=amid,
            unit="ms",
            yardstick=before,
            yardstick_name="before, ms",
            at_most=2.0,
            of_ratio=True,
        ),
        Figure(
            name="look for due work amid dead timers, p50",
            figure=percentile(passes, 50),
            unit="ms",
            yardstick=passes_before,
            yardstick_name="before, ms",
            at_most=2.0,
            of_ratio=True,
        ),
        Figure(name="look for due work amid dead timers, slowest", figure=max(passes), unit="ms"),
        Figure(name="claim amid dead rows, mean", figure=mean, unit="ms"),
        Figure(name="claim amid dead rows, slowest", figure=max(claims), unit="ms"),
        Figure(name="claim when the reader has gone, p50", figure=freed, unit="ms"),
        Figure(name="claim after autovacuum, p50", figure=after, unit="ms"),
        Figure(name="until autovacuum had cleared them", figure=cleared_s, unit="s"),
    ]


async def _claims(connection: Any, setting: Setting) -> list[float]:
    await claim_ms(connection, turn_claim(("default",)), 2, 10)
    return await claim_ms(connection, turn_claim(("default",)), setting["samples"], 10, setting["pause_s"])


async def _fill(connection: Any, waiting: int, closed: int) -> None:
    """Those that wait, and many that are over: a planner must not find it cheap to begin with all executions."""
    old = ids(closed, time.time_ns() // 1000 - 30 * 24 * 3_600_000_000, 1_000)
    over = (head(key, at, kind=KIND, version=VERSION, state="COMPLETED") for key, at in old)
    await copy(connection, "holdfast_executions", HEAD, over)
    # Younger than all that is churned: those were before them in the queue.
    first_us = time.time_ns() // 1000 - 60_000_000
    made = list(ids(waiting, first_us, 10))
    await copy(connection, "holdfast_executions", HEAD, (head(key, at, kind=KIND, version=VERSION) for key, at in made))
    await copy(connection, "holdfast_ready", READY, (ready(key, at, kind=KIND, version=VERSION) for key, at in made))
    await connection.execute("VACUUM ANALYZE")


async def _churn(connection: Any, setting: Setting) -> None:
    since_at = time.time_ns() // 1000 - 3_600_000_000
    for done in range(0, setting["dead"], setting["at_once"]):
        await connection.execute(_INSERT, done, setting["at_once"], since_at + done)
        await connection.execute(_CLAIM)
        await connection.execute(_DELETE)
        await connection.execute(_SET_TIMERS, done, setting["at_once"], since_at + done)
        await connection.execute(_FIRE_TIMERS)


async def _until_cleared(connection: Any, setting: Setting) -> float:
    """Autovacuum looks once a minute, by default."""
    began = time.monotonic()
    while (await connection.fetchval(_DEAD)) > setting["dead"] // 10:
        if time.monotonic() - began > setting["patience_s"]:
            break
        await asyncio.sleep(0.5)
    return time.monotonic() - began
