"""kill -9 while a task speaks: what was heard stays, and the next attempt goes on in the same sequence."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.conftest import WATCHFUL, OpenEngine
from tests.faults import output_app
from tests.faults.conftest import Spawn

WORDS = 20


async def test_a_follower_hears_the_next_attempt_after_a_kill(engine: OpenEngine, spawn: Spawn, folder: Path):
    """One follower, from before the kill to the end: nothing twice, no number missing, each attempt named."""
    client = (await engine(config=WATCHFUL)).client
    process = await spawn("work", module="tests.faults.output_app", worker={"lease_s": 0.6})
    handle = await client.start_task(output_app.speaks, WORDS)
    updates = handle.follow()
    told = [await asyncio.wait_for(anext(updates), 20) for _ in range(1 + WORDS)]
    await process.kill()
    (folder / "gate").touch()
    await engine(tasks=output_app.TASKS, config=WATCHFUL)
    told += [update async for update in updates]

    outputs = [update for update in told if update.kind == "output"]
    assert [[attempt, number] for attempt in (1, 2) for number in range(WORDS)] == [one.value for one in outputs]
    assert list(range(1, 2 * WORDS + 1)) == [one.seq for one in outputs]
    assert [1, 2] == [update.attempt for update in told if update.kind == "attempt"]
    assert ("ended", "completed", 2) == (told[-1].kind, told[-1].status, told[-1].attempt)
    assert 2 == await handle.result()
