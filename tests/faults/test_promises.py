"""kill -9 while promises are settled and tasks are completed from outside: each once, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
import secrets
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SettledPromise
from holdfast.errors import PromiseNotFound, StaleAttempt
from tests.conftest import OpenEngine, until
from tests.faults import promises_app
from tests.faults.conftest import Spawn, lines, sound_records
from tests.replay.recording import check_whole

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {
    "module": "tests.faults.promises_app",
    "worker": {"lease_s": 0.5},
    "engine": {"crash_attempts": 100},
}
ORDERS = 40
COPIES = 3


class Provider:
    """An outside system that reads the tokens it was given and answers each of them, several times."""

    def __init__(self, folder: Path, clients: list[Client], chance: random.Random) -> None:
        self._folder = folder
        self._clients = clients
        self._chance = chance
        self._done: set[str] = set()
        self.paid: dict[int, list[SettledPromise]] = {}

    async def work(self) -> None:
        while True:
            asked = [(line, "asked") for line in lines(self._folder, "asked")]
            asked += [(line, "shipping") for line in lines(self._folder, "shipping")]
            for (number, token), what in asked:
                if token not in self._done:
                    self._done.add(token)
                    await self._answer(what, number, token)
            await asyncio.sleep(0.01)

    async def _answer(self, what: str, number: int, token: str) -> None:
        copies = [self._call(self._chance.choice(self._clients), what, number, token) for _ in range(COPIES)]
        answers = [answer for answer in await asyncio.gather(*copies) if answer is not None]
        if what == "asked":
            self.paid.setdefault(number, []).extend(answers)

    async def _call(self, client: Client, what: str, number: int, token: str) -> SettledPromise | None:
        try:
            return await client.complete_promise(token, f"{what} {number}", idempotency_key=f"{what}:{token}")
        except StaleAttempt:
            assert what == "shipping", "only attempts end by themselves"
        except PromiseNotFound:
            # Read before it was recorded, or its worker died before. A promise is there before anybody is told of it.
            assert what == "shipping", "a promise that nobody finds"
            self._done.discard(token)
        return None


async def test_settled_and_completed_once_across_kills(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
) -> None:
    """F2A, F59, 003-08: every copy of an answer has one effect, whoever dies in between."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    worker = await spawn("work", **OPTIONS)
    clients = [(await engine()).client, (await engine()).client]
    handles = [
        await clients[0].start_workflow("order", number, idempotency_key=f"order-{number}") for number in range(ORDERS)
    ]
    provider = Provider(folder, clients, chance)
    providing = asyncio.create_task(provider.work())
    for _ in range(6):
        await asyncio.sleep(chance.random() * 0.3)
        await worker.kill()
        worker = await spawn("work", **OPTIONS)
    results = await asyncio.gather(*(handle.result(timeout=60) for handle in handles))
    providing.cancel()

    assert [[f"asked {number}", f"shipping {number}"] for number in range(ORDERS)] == results
    for number in range(ORDERS):
        settled = provider.paid[number]
        assert {f"asked {number}"} == {answer.value for answer in settled}
        assert 1 == sum(answer.idempotency_key_new for answer in settled)
    for record in await sound_records(database_url):
        types = [event.type for event in record.history]
        assert (1, 1) == (types.count("PROMISE_RESOLVED"), types.count("TASK_COMPLETED"))
        check_whole(promises_app.order, record.history, record.execution_row.id)


async def test_a_deferred_task_outlives_every_process(
    engine: OpenEngine, spawn: Spawn, folder: Path, database_url: str
) -> None:
    """Killed after the body has returned: no lease runs out on it, and its token still counts."""
    worker = await spawn("work", **OPTIONS)
    client = (await engine()).client
    handle = await client.start_workflow("order", 1)
    await until(lambda: lines(folder, "asked"))
    await client.complete_promise(lines(folder, "asked")[0][1], "paid")

    async def left_to_others() -> bool:
        return [(True, None)] == [(row.deferred, row.worker) for row in await handle.pending_tasks()]

    await until(left_to_others)
    await worker.kill()
    await spawn("work", **OPTIONS)
    report = await (await engine()).recover()
    await client.complete_promise(lines(folder, "shipping")[0][1], "shipped")

    assert 0 == report.tasks_reclaimed
    assert ["paid", "shipped"] == await handle.result(timeout=20)
    assert 1 == len(lines(folder, "shipping"))
    await sound_records(database_url)
