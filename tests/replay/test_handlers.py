"""Classes under fire: signals, updates and queries while tasks, steps, timers and conditions are open.

Whatever the interleaving was, the history replays, and cut at every place where a crash could cut it, the program makes
the recorded move again.
"""

import asyncio
import random
from typing import Any

import pytest

from holdfast import EngineConfig, WorkerConfig, WorkflowContext, query, signal, task, update, workflow
from holdfast.errors import UpdateFailed, UpdateRejected
from tests.conftest import QUICK
from tests.replay.recording import Commits, check_cuts, check_invariants, check_whole


@task
async def price(item: str) -> int:
    return len(item)


def weigh(item: str) -> int:
    return len(item) * 2


@workflow
class Basket:
    def __init__(self, ctx: WorkflowContext) -> None:
        self.ctx = ctx
        self.items: list[str] = []
        self.log: list[str] = []
        self.total = 0
        self.weight = 0
        self.open = True
        self.lock = asyncio.Lock()

    async def run(self, ctx: WorkflowContext) -> dict[str, Any]:
        rounds = 0
        while self.open:
            try:
                await ctx.wait_until(lambda: len(self.items) > 3 * (rounds + 1) or not self.open, timeout=0.05)  # noqa: B023
            except TimeoutError:
                self.log.append(f"quiet at {len(self.items)}")
            rounds += 1
            ctx.state["items"] = len(self.items)
        await ctx.wait_until(ctx.all_handlers_finished)
        return {"items": sorted(self.items), "total": self.total, "weight": self.weight}

    @signal
    def put(self, item: str) -> None:
        self.items.append(item)
        self.log.append(f"put {item}")

    @signal
    async def put_weighed(self, ctx: WorkflowContext, item: str) -> None:
        async with self.lock:
            self.weight += await ctx.run(weigh, item)
            self.items.append(item)
        if ctx.random.random() < 0.3:
            await ctx.sleep(0.002)
            self.log.append(f"slept for {item}")

    @update
    async def buy(self, item: str) -> int:
        cost = await self.ctx.task(price, item)
        self.total += cost
        self.items.append(item)
        return self.total

    @buy.validator
    def check(self, item: str) -> None:
        if not item.startswith("item"):
            raise ValueError(f"no {item} here")

    @update
    def drop(self, item: str) -> str:
        if item not in self.items:
            raise LookupError(item)
        self.items.remove(item)
        return item

    @signal
    def close(self) -> None:
        self.open = False

    @query
    def count(self) -> int:
        return len(self.items)


async def shop(handle: Any, seed: int) -> tuple[list[str], int]:
    """Send a mix of everything; what should be in the basket in the end, and what it cost."""
    chance = random.Random(seed)
    expected: list[str] = []
    cost = 0

    async def one(number: int) -> None:
        nonlocal cost
        item = f"item {number}"
        match chance.randrange(6):
            case 0 | 1:
                await handle.signal("put", item)
                expected.append(item)
            case 2:
                await handle.signal("put_weighed", item)
                expected.append(item)
            case 3:
                await handle.update("buy", item)
                expected.append(item)
                cost += len(item)
            case 4:
                with pytest.raises(UpdateRejected, match="no bomb here"):
                    await handle.update("buy", "bomb")
            case 5:
                with pytest.raises(UpdateFailed, match="missing"):
                    await handle.update("drop", "missing")
                assert await handle.query("count") >= 0

    for start in range(0, 24, 4):
        await asyncio.gather(*map(one, range(start, start + 4)))
    await handle.signal("close")
    return sorted(expected), cost


@pytest.mark.parametrize("cached", [10_000, 0], ids=["cached", "rebuilt at every wait"])
async def test_cut_anywhere_the_next_move_is_the_recorded_one(engine, cached):
    """Nothing that was sent is lost or done twice, and every history replays."""
    config = EngineConfig(store=QUICK.store, worker=WorkerConfig(cached_executions=cached, shutdown_grace_s=0.2))
    running = await engine(workflows=[Basket], tasks=[price], config=config)
    commits = Commits(running)
    handles = [await running.client.start_workflow(Basket) for _ in range(6)]
    wanted = await asyncio.gather(*(shop(handle, seed) for seed, handle in enumerate(handles)))
    compared = 0
    for handle, (items, cost) in zip(handles, wanted, strict=True):
        result = await handle.result(timeout=20)
        assert (items, cost) == (result["items"], result["total"])
        history = await handle.history()
        check_invariants(history)
        check_whole(Basket, history, handle.id)
        compared += check_cuts(Basket, history, handle.id, commits.cuts(handle.id, len(history)))
    assert compared > 6 * 5
