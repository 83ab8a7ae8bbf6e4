"""An order: payment that fails now and then, packing with progress, a parcel somebody else reports as shipped.

Run it: `python -m examples.order`.

It shows a task with retries, a time limit with plain `asyncio.timeout`, a task that blocks and therefore runs in a
thread, heartbeats that tell the next attempt where to go on, and a signal with a time limit.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from holdfast import Engine, RetryPolicy, TaskContext, WorkflowContext, task, workflow


@dataclass
class Order:
    order_id: str
    items: list[str]
    card: str = "good"
    payment_window_s: float = 60.0
    shipping_window_s: float = 60.0
    packing_s_per_item: float = 0.1


@dataclass
class Shipment:
    tracking: str


@dataclass
class Receipt:
    outcome: str
    payment: str = ""
    tracking: str = ""


class CardNetworkError(Exception):
    """A failure that may be over in a moment."""


def reserve_stock(items: list[str]) -> int:
    """A step: short, run in place by the worker that runs the workflow."""
    return len(items)


def release_stock(items: list[str]) -> int:
    return -len(items)


@task(retry=RetryPolicy(initial_interval_s=0.5, max_interval_s=5.0), start_to_close=10)
async def charge_card(task: TaskContext, order: Order) -> str:
    """Fails twice, then works; with a bad card never. It is tried until it succeeds or the workflow gives up waiting.

    A task runs at least once: after a crash nobody knows whether the attempt before reached the bank. The idempotency
    key is the same for every attempt; a payment service that gets it charges once.
    """
    if order.card != "good" or task.info.attempt < 3:
        raise CardNetworkError("the card network did not answer")
    return f"payment {task.info.idempotency_key[-8:]}"


@task(heartbeat_timeout=3)
def pack(task: TaskContext, items: list[str], s_per_item: float) -> int:
    """A plain `def` runs in a thread, so it may block. After a crash the next attempt goes on at the last report."""
    packed: int = task.last_details(int) or 0
    if packed:
        task.logger.info("attempt %d: %d of %d items are packed already", task.info.attempt, packed, len(items))
    while packed < len(items):
        if task.is_cancelled:  # the worker is shutting down, or the order was cancelled
            break
        time.sleep(s_per_item)
        packed += 1
        task.heartbeat(packed, progress=packed / len(items))
    return packed


@task(retry=RetryPolicy(max_attempts=10))
async def refund(payment: str) -> str:
    return f"refund of {payment}"


@workflow(kind="order")
async def process_order(ctx: WorkflowContext, order: Order) -> Receipt:
    await ctx.run(reserve_stock, order.items)

    # Durable: the time limit holds across restarts. When it passes, the task is cancelled, retries and all.
    try:
        async with asyncio.timeout(order.payment_window_s):
            payment = await ctx.task(charge_card, order)
    except TimeoutError:
        await ctx.run(release_stock, order.items)
        return Receipt("not paid in time")

    await ctx.task(pack, order.items, order.packing_s_per_item)

    try:
        shipment = await ctx.wait_for_signal("shipped", Shipment, timeout=order.shipping_window_s)
    except TimeoutError:
        await ctx.task(refund, payment)
        return Receipt("not shipped in time", payment)
    return Receipt("shipped", payment, shipment.tracking)


async def main() -> None:
    async with Engine("sqlite://", workflows=[process_order], tasks=[charge_card, pack, refund]) as engine:
        order = Order("ORDER-1", ["teapot", "cup", "cup"])
        handle = await engine.client.start_workflow(process_order, order, workflow_id=order.order_id)
        # A signal that comes before anybody waits for it is kept.
        await handle.signal("shipped", Shipment("TRACK-1"))
        print(await handle.result())


if __name__ == "__main__":
    asyncio.run(main())
