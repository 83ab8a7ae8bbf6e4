"""kill -9 while an operation is part of the application's own transaction on PostgreSQL: both or neither."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal

import asyncpg
import pytest

from holdfast.model import events as e
from tests.conftest import OpenEngine
from tests.faults import using_app
from tests.faults.conftest import Spawn, sound_records, value_of
from verification.postgres import LocalPostgres

pytestmark = pytest.mark.slow

MODULE = "tests.faults.using_app"
ROUNDS = 5


@pytest.fixture
async def registered(postgres_url: str, engine: OpenEngine) -> None:
    """A worker has been there, so that the kind is known; it is gone again, so that work stays where it is put."""
    working = await engine(workflows=[using_app.fulfil], url=postgres_url)
    await working.shutdown()
    using_app.connect_to_server(postgres_url).close()


async def column(url: str, sql: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def count_orders(url: str) -> int:
    (found,) = await column(url, "SELECT count(*) FROM orders")
    return int(found)


async def signalled(url: str) -> set[str]:
    """The workflow ids that have been started with their signal, after a check of all invariants."""
    found = set()
    for record in await sound_records(url):
        signals = [event.body for event in record.history if isinstance(event.body, e.SignalReceived)]
        assert [value_of(signal.signal_value) for signal in signals] == [record.execution_row.workflow_id]
        found.add(record.execution_row.workflow_id)
    return found


async def kept(url: str) -> set[str]:
    """The application's orders, which are those signalled and those whose idempotency key is known."""
    orders = set(await column(url, "SELECT name FROM orders"))
    requests = {key[4:] for key in await column(url, "SELECT request_id FROM holdfast_requests")}
    assert orders == requests == await signalled(url)
    return orders


async def remove_all(url: str) -> None:
    """An empty database, as before the first order. Waits for what a killed process has left open."""
    tables = "orders, holdfast_events, holdfast_executions, holdfast_ready, holdfast_requests, holdfast_workflow_keys"
    await column(url, f"TRUNCATE {tables}")


async def test_killed_at_every_statement_there_are_both_or_neither(
    spawn: Spawn, postgres_url: str, engine: OpenEngine, registered: None
) -> None:
    """The engine reads the database's clock once in a while: how many statements there are is not always the same."""
    outcomes: list[bool] = []
    kill_at = 1
    process = await spawn("once", module=MODULE, db=postgres_url)
    while len(outcomes) < 100:
        await remove_all(postgres_url)
        await process.copy(kill_at=kill_at)
        ended, *said = await process.copy_ended()
        committed = "committed" in said
        assert bool(await kept(postgres_url)) is committed, f"killed at statement {kill_at}"
        if ended == 0 and True in outcomes:
            break
        if ended == 0:
            # It did not read the clock this time, the one before did: what follows the commit was not reached.
            kill_at -= 1
            continue
        assert ended == -signal.SIGKILL
        outcomes.append(committed)
        kill_at += 1

    assert outcomes.count(False) > 10, "the application's own, the savepoint, the reads, the writes, the commit"
    assert True in outcomes, "killed after the commit, too"


async def test_killed_at_any_moment_there_are_both_or_neither(
    spawn: Spawn, postgres_url: str, engine: OpenEngine, registered: None
) -> None:
    """A stream of transactions beside a working engine in the same process, cut off at random; then it all goes on."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    process = await spawn("often", module=MODULE, db=postgres_url)
    for number in range(ROUNDS):
        copy = await process.copy(prefix=f"r{number}-", work=rng.random() < 0.5)
        # Progress, not time: each must be at it, and what all of them have made is to be checked every time.
        enough = await count_orders(postgres_url) + rng.randrange(1, 40)
        async with asyncio.timeout(20):
            while await count_orders(postgres_url) < enough:
                await asyncio.sleep(rng.uniform(0.0, 0.005))
        os.kill(copy, signal.SIGKILL)
        await process.copy_ended()
        await _left_alone(postgres_url)
        await kept(postgres_url)
    names = await kept(postgres_url)
    assert names

    client = (await engine(workflows=[using_app.fulfil], url=postgres_url)).client
    async for view in client.iter_workflows():
        assert await client.workflow(view.workflow_execution_id).result(timeout=60) == view.workflow_id


async def _left_alone(url: str) -> None:
    """A COMMIT that was on its way when the process was killed is still done: what is read next must not change."""
    others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    async with asyncio.timeout(20):
        while await column(url, others):
            await asyncio.sleep(0.01)


async def test_a_server_that_is_killed_before_the_commit_has_neither(engine: OpenEngine) -> None:
    """And one that has answered the commit has both, after its recovery."""
    with LocalPostgres(durable=True) as server:
        running = await engine(workflows=[using_app.fulfil], url=server.url)
        client = running.client
        app = await asyncpg.connect(server.url)
        await app.execute("CREATE TABLE orders (name TEXT PRIMARY KEY)")
        for name in ("answered", "open"):
            await app.execute(f"BEGIN; INSERT INTO orders VALUES ('{name}')")
            await client.signal_with_start_workflow(
                name, using_app.fulfil, signal_name="placed", signal_value=name, using=app
            )
            if name == "answered":
                await app.execute("COMMIT")
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        app.terminate()

        assert await column(server.url, "SELECT name FROM orders") == ["answered"]
        assert await (await client.find_workflow("answered")).result(timeout=60) == "answered"
        assert {view.workflow_id async for view in client.iter_workflows()} == {"answered"}
        await running.shutdown()
