"""A call that is cancelled half-way: it has its whole effect or none, and the next call finds everything in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Engine, EngineConfig, StoreConfig, WorkerConfig
from holdfast.errors import ExecutionNotFound
from holdfast.model import events as e
from tests.conftest import STORE, OpenEngine, until
from tests.faults import app
from tests.faults.conftest import sound_records
from verification.invariants import Record

# One reader: a connection that a cancelled read left unusable would be missed at once.
CONFIG = EngineConfig(
    store=StoreConfig(synchronous="normal", readers=1), worker=WorkerConfig(lease_s=600, shutdown_grace_s=1.0)
)
# Every point at first, then further and further apart, until nearly all calls come to their end.
TURNS = [*range(12), *(int(12 * 1.25**power) for power in range(24))]

Call = Callable[[Client, str], Awaitable[object]]


async def start(client: Client, key: str) -> object:
    return await client.start_workflow("collect", 1, workflow_id=key, request_id=f"start-{key}")


async def signal(client: Client, key: str) -> object:
    handle = await client.find_workflow("open")
    return await handle.signal("item", key, request_id=f"signal-{key}")


async def signal_with_start(client: Client, key: str) -> object:
    return await client.signal_with_start_workflow(
        key, "collect", 2, signal_name="item", signal_value=key, request_id=f"both-{key}"
    )


async def result(client: Client, key: str) -> object:
    return await (await client.find_workflow("open")).result()


async def listing(client: Client, key: str) -> object:
    return await client.list_workflows()


async def history(client: Client, key: str) -> object:
    return await client.history((await client.find_workflow("open")).id)


async def cancel(client: Client, key: str) -> object:
    handle = await client.start_workflow("collect", 1, workflow_id=key, request_id=f"start-{key}")
    return await handle.cancel()


CALLS: list[Call] = [start, signal, signal_with_start, result, listing, history, cancel]


async def cut_off(call: Awaitable[object], turns: int) -> bool:
    """Let the event loop turn so often, then cancel the call; whether it had finished before."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return not task.cancelled()


@pytest.fixture
async def running(engine: OpenEngine) -> Engine:
    return await engine(workflows=app.WORKFLOWS, tasks=app.TASKS, config=CONFIG)


async def check_in_order(running: Engine) -> None:
    """Nothing is left open or waited for, and calls of every kind work."""
    client = running.client
    assert [] == running._local.result_waiters.awaited
    probe = await asyncio.wait_for(client.start_workflow("collect", 1), 5)
    await asyncio.wait_for(probe.signal("item", "probe"), 5)
    assert ["probe"] == await probe.result(timeout=5)
    assert probe.id in [found.workflow_execution_id for found in (await client.list_workflows()).items]
    # The services may be writing at this very moment: what must not be is a transaction that nobody ends.
    await until(lambda: not is_in_transaction(running))


def is_in_transaction(running: Engine) -> bool:
    writer: Any = running.storage._writer  # type: ignore[attr-defined]
    if STORE == "sqlite":
        return bool(writer._transactions.connection.in_transaction)
    connection = writer.transactions._connection
    return connection is not None and bool(connection.is_in_transaction())


def signals_of(records: list[Record]) -> list[str | None]:
    return [
        event.body.request_id
        for record in records
        for event in record.history
        if isinstance(event.body, e.SignalReceived)
    ]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_call_cancelled_after_any_number_of_turns(call: Call, running: Engine, database_url: str, folder: Path):
    """Cancelled after 0, 1, 2, … turns of the event loop, a call leaves nothing open and everything consistent."""
    await running.client.start_workflow("collect", 1_000, workflow_id="open")
    for turns in TURNS:
        await cut_off(call(running.client, f"{call.__name__}-{turns}"), turns)
        await check_in_order(running)

    await sound_records(database_url)


@pytest.mark.parametrize("call", [start, signal, signal_with_start], ids=lambda call: call.__name__)
async def test_cancelled_call_asked_again_has_its_effect_once(
    call: Call, running: Engine, database_url: str, folder: Path
):
    """Whether or not the cancelled call was committed, the same request afterwards makes it exactly one effect."""
    await running.client.start_workflow("collect", 1_000, workflow_id="open")
    keys = [f"{call.__name__}-{turns}" for turns in TURNS]
    for turns, key in zip(TURNS, keys, strict=True):
        await cut_off(call(running.client, key), turns)
        await call(running.client, key)

    records = await sound_records(database_url)
    if call is not signal:
        assert sorted(["open", *keys]) == sorted(record.execution_row.workflow_id for record in records)
    if call is not start:
        assert len(keys) == len(signals_of(records)) == len(set(signals_of(records)))


async def test_cancelled_signal_with_start_never_starts_without_its_signal(
    running: Engine, database_url: str, folder: Path
):
    """One atomic step: after a cancel there is an execution with its signal, or no execution."""
    keys = [f"key-{turns}" for turns in TURNS]
    for turns, key in zip(TURNS, keys, strict=True):
        await cut_off(signal_with_start(running.client, key), turns)
    await check_in_order(running)

    records = {record.execution_row.workflow_id: record for record in await sound_records(database_url)}
    found = [records[key] for key in keys if key in records]
    assert [1] * len(found) == [record.execution_row.signal_count for record in found]
    for key in keys:
        if key not in records:
            with pytest.raises(ExecutionNotFound):
                await running.client.find_workflow(key)


@pytest.mark.slow
async def test_thousand_random_cancels_under_load(running: Engine, database_url: str, folder: Path):
    """Calls of all kinds, many at once, cancelled at random: the engine serves on, and the histories are sound."""
    chance = random.Random(20)
    await running.client.start_workflow("collect", 100_000, workflow_id="open")
    for round_ in range(20):
        calls = [
            cut_off(chance.choice(CALLS)(running.client, f"{round_}-{number}"), chance.choice(TURNS))
            for number in range(50)
        ]
        await asyncio.wait_for(asyncio.gather(*calls), 20)
    await check_in_order(running)

    await sound_records(database_url)
