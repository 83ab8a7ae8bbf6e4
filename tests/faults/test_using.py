"""kill -9 while an operation is part of the application's own transaction: both or neither, at every point."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.model import events as e
from tests.conftest import OpenEngine, until
from tests.faults import using_app
from tests.faults.conftest import Spawn, sound_records, value_of

pytestmark = [pytest.mark.slow, pytest.mark.sqlite_only("see test_using_postgres.py")]

MODULE = "tests.faults.using_app"
ROUNDS = 12


@pytest.fixture
async def registered(database: Path, engine: OpenEngine) -> None:
    """A worker has been there, so that the kind is known; it is gone again, so that work stays where it is put."""
    working = await engine(workflows=[using_app.fulfil])
    await working.shutdown()
    using_app.connect(database).close()


def orders(database: Path) -> set[str]:
    """The application's rows, after SQLite's own check of the file."""
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {name for (name,) in connection.execute("SELECT name FROM orders")}
    finally:
        connection.close()


def count_orders(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM orders").fetchone()[0])


async def signalled(database: Path) -> set[str]:
    """The workflow ids that have been started with their signal. One without the other would be half an operation."""
    found = set()
    for record in await sound_records(f"sqlite:///{database}"):
        signals = [event.body for event in record.history if isinstance(event.body, e.SignalReceived)]
        assert [value_of(signal.signal_value) for signal in signals] == [record.execution_row.workflow_id]
        found.add(record.execution_row.workflow_id)
    return found


def remembered(database: Path) -> set[str]:
    """The orders whose idempotency key is known."""
    connection = sqlite3.connect(database)
    try:
        return {key[4:] for (key,) in connection.execute("SELECT request_id FROM holdfast_requests")}
    finally:
        connection.close()


async def test_killed_at_every_statement_there_are_both_or_neither(
    spawn: Spawn, engine: OpenEngine, registered: None, database: Path
) -> None:
    process = await spawn("once", module=MODULE)
    await process.copy()
    ended, committed, told = await process.copy_ended()
    statements = int(told)
    assert (ended, committed) == (0, "committed")
    assert statements > 10, "the application's own, the savepoint, the reads, the writes, the commit"
    assert orders(database) == await signalled(database) == remembered(database) == {"o1"}

    outcomes = []
    for kill_at in range(1, statements + 1):
        remove_all(database)
        await process.copy(kill_at=kill_at)
        assert (await process.copy_ended())[0] == -signal.SIGKILL

        kept = orders(database)
        assert kept == await signalled(database) == remembered(database), f"killed at statement {kill_at}"
        outcomes.append(bool(kept))

    assert outcomes == [False] * (statements - 1) + [True], "nothing before the commit, everything after it"


def remove_all(database: Path) -> None:
    """An empty database, as before the first order."""
    connection = sqlite3.connect(database, isolation_level=None)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    connection.execute("BEGIN IMMEDIATE")
    for table in tables:
        if table == "orders" or table.removeprefix("holdfast_") in {
            "events",
            "executions",
            "ready",
            "requests",
            "workflow_keys",
        }:
            connection.execute(f"DELETE FROM {table}")
    connection.execute("COMMIT")
    connection.close()


async def test_killed_at_any_moment_there_are_both_or_neither(
    spawn: Spawn, engine: OpenEngine, registered: None, database: Path
) -> None:
    """A stream of transactions beside a working engine in the same process, cut off at random; then it all goes on."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    process = await spawn("often", module=MODULE)
    for number in range(ROUNDS):
        copy = await process.copy(prefix=f"r{number}-", work=rng.random() < 0.5)
        # Progress, not time: each must be at it, and what all of them have made is to be checked every time.
        enough = count_orders(database) + rng.randrange(1, 40)
        await until(lambda: count_orders(database) >= enough)  # noqa: B023 - awaited here
        await asyncio.sleep(rng.uniform(0.0, 0.005))
        os.kill(copy, signal.SIGKILL)
        await process.copy_ended()

        assert orders(database) == await signalled(database) == remembered(database)
    assert orders(database)

    client = (await engine(workflows=[using_app.fulfil])).client
    async for view in client.iter_workflows():
        result = await client.workflow(view.workflow_execution_id).result(timeout=60)
        assert result == view.workflow_id
