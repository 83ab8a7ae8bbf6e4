"""What happens in the demo: orders are placed, people chat, a courier reports parcels. All of it through the client.

It can be interrupted anywhere and begun again: whatever it does twice has the effect of once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from examples.chat import conversation, reply, say
from examples.hello import hello
from examples.order import Order, Shipment, charge_card, pack, process_order, refund
from holdfast import Client, ExecutionInfo, HoldfastError, Status, WorkflowHandle

WORKFLOWS = (hello, conversation, process_order)
TASKS = (reply, charge_card, pack, refund)
OPEN = (Status.PENDING, Status.RUNNING, Status.WAITING, Status.STUCK)


class Placed(NamedTuple):
    """An order under way. `by_hand`: no courier reports its parcel, somebody has to."""

    order_id: str
    handle: WorkflowHandle
    by_hand: bool


async def begin(client: Client, *, fast: bool) -> list[Placed]:
    """Start whatever is not under way from last time; the orders."""
    await client.start_workflow(hello, "world", workflow_id="hello:world")
    orders = await _open_orders(client) or await _place_orders(client, fast=fast)
    await _chat(client, pause_s=0.1 if fast else 1.0)
    return orders


async def ended(orders: Iterable[Placed]) -> None:
    """Until each of them has ended, in whatever way."""
    await asyncio.gather(*(order.handle.result() for order in orders), return_exceptions=True)


async def courier(client: Client) -> None:
    """Reports the parcels of orders that are packed, for ever.

    The request id makes a repeated report harmless, even after a crash: it gets the first answer again.
    """
    while True:
        async for view in client.iter_workflows(kind="order", status=Status.WAITING):
            if not _by_hand(view) and any(wait.name == "shipped" for wait in view.waiting_for):
                handle = client.workflow(view.workflow_execution_id)
                shipment = Shipment(f"TRACK-{view.workflow_id}")
                with suppress(HoldfastError):  # just closed, or the database is busy: look again
                    await handle.signal("shipped", shipment, request_id=f"shipped/{handle.id}")
        await asyncio.sleep(0.2)


async def _open_orders(client: Client) -> list[Placed]:
    views = [view async for view in client.iter_workflows(kind="order", status=OPEN)]
    views.sort(key=lambda view: view.workflow_execution_id)  # ids grow with time; a list comes newest first
    return [Placed(view.workflow_id, client.workflow(view.workflow_execution_id), _by_hand(view)) for view in views]


def _by_hand(view: ExecutionInfo) -> bool:
    return "courier" not in view.metadata


async def _place_orders(client: Client, *, fast: bool) -> list[Placed]:
    """One that goes well, one whose parcel waits for somebody, one that is never paid."""
    first = 1 + len([view async for view in client.iter_workflows(kind="order")])
    with_courier, by_hand = {"courier": "demo"}, dict[str, str]()
    orders = (
        (Order(f"ORDER-{first}", ["teapot", "cup", "cup", "tea"]), with_courier),
        (Order(f"ORDER-{first + 1}", ["lamp", "bulb"], shipping_window_s=2.0 if fast else 60.0), by_hand),
        (Order(f"ORDER-{first + 2}", ["piano"], card="bad", payment_window_s=1.0 if fast else 6.0), with_courier),
    )
    placed = []
    for order, metadata in orders:
        order.packing_s_per_item = 0.1 if fast else 1.0
        handle = await client.start_workflow(process_order, order, workflow_id=order.order_id, metadata=metadata)
        placed.append(Placed(order.order_id, handle, not metadata))
    return placed


async def _chat(client: Client, pause_s: float) -> None:
    """Two people talk; bob says bye, ada stays. After a restart a conversation still knows how far it was."""
    texts = [("ada", "hi"), ("bob", "hello"), ("ada", "where is my teapot?"), ("bob", "bye")]
    running = [view.workflow_id async for view in client.iter_workflows(kind="chatbot-conversation", status=OPEN)]
    if running:
        last_words = [("ada", "are you still there?"), ("bob", "bye")]
        texts = [(name, text) for name, text in last_words if f"conversation:{name}" in running]
    for name, text in texts:
        await say(client, name, text, end=text == "bye")
        await asyncio.sleep(pause_s)
