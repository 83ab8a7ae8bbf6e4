"""kill -9 while updates are under way: each is done once, and whoever waits in another process gets its answer."""

from __future__ import annotations

import asyncio
import random
import secrets
from pathlib import Path
from typing import Any

import pytest

from holdfast import WorkflowHandle
from holdfast.errors import UpdateRejected
from tests.conftest import OpenEngine, until
from tests.faults import calls_app
from tests.faults.conftest import Spawn, lines, sound_records
from tests.replay.recording import check_whole

OPTIONS: dict[str, Any] = {
    "module": "tests.faults.calls_app",
    "worker": {"lease_s": 0.5},
    "engine": {"crash_attempts": 100},
}

pytestmark = pytest.mark.slow


async def has_events(handle: WorkflowHandle, event_type: str, count: int) -> bool:
    return [event.type for event in await handle.history()].count(event_type) >= count


async def test_killed_between_acceptance_and_completion(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
):
    """The next worker completes what the first one accepted; the caller has waited all the time."""
    worker = await spawn("work", **OPTIONS)
    client = (await engine()).client
    handle = await client.start_workflow("Account")
    paying = asyncio.create_task(handle.update("pay_in", 7, update_id="seven"))
    await until(lambda: [7, worker.pid] in lines(folder, "begun"))
    assert await has_events(handle, "UPDATE_ACCEPTED", 1)
    await worker.kill()
    again = asyncio.create_task(handle.update("pay_in", 7, update_id="seven"))

    await spawn("work", **OPTIONS)
    (folder / "book").touch()
    assert (7, 7) == (await paying, await again)
    await handle.signal("close")
    assert 7 == await handle.result(timeout=20)
    (record,) = await sound_records(database_url)
    check_whole(calls_app.Account, record.history, record.execution_row.id)


async def test_many_updates_and_kills_at_random(engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str):
    """Every amount is in the account once, every caller is answered with a balance that contains it, and what is
    asked by queries in between never goes back."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    (folder / "book").touch()
    worker = await spawn("work", **OPTIONS)
    callers = [await engine(), await engine()]
    looker = (await engine(workflows=[calls_app.Account])).client
    handle = await callers[0].client.start_workflow("Account", workflow_id="account")
    amounts = range(1, 121)

    async def pay(number: int, amount: int) -> int:
        await asyncio.sleep(chance.random() * 2)
        mine = callers[number % 2].client.workflow(handle.id)
        balance: int = await mine.update("pay_in", amount, update_id=f"pay-{amount}")
        return balance

    paying = [asyncio.create_task(pay(number, amount)) for number, amount in enumerate(amounts)]
    seen: list[list[int]] = []
    for _ in range(3):
        done = len(lines(folder, "begun"))
        await until(lambda: len(lines(folder, "begun")) > done + chance.randrange(20))  # noqa: B023
        await worker.kill()
        seen.append(await looker.query_workflow(handle.id, "so_far"))
        worker = await spawn("work", **OPTIONS)
    balances = await asyncio.wait_for(asyncio.gather(*paying), 60)
    with pytest.raises(UpdateRejected, match="not money"):
        await handle.update("pay_in", -1)
    entries = await looker.query_workflow(handle.id, "so_far")
    await handle.signal("close")

    assert sum(amounts) == await handle.result(timeout=20)
    assert list(amounts) == sorted(entries)
    totals = {sum(entries[: place + 1]): amount for place, amount in enumerate(entries)}
    assert list(amounts) == [totals[balance] for balance in balances]
    assert all(earlier == entries[: len(earlier)] for earlier in seen)
    (record,) = await sound_records(database_url)
    check_whole(calls_app.Account, record.history, record.execution_row.id)
