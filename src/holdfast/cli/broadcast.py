"""`holdfast broadcast`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.contract.messages import BroadcastResult


@click.command()
@click.argument("name")
@click.option("--idempotency-key", metavar="KEY", help="The same key again is the same broadcast.")
@connected
def broadcast(door: Door, name: str, *, idempotency_key: str | None) -> None:
    """Wake everybody who waits for NAME now. Nothing is kept for those who come later."""

    async def run(client: Client) -> BroadcastResult:
        return await client.broadcast(name, idempotency_key=idempotency_key)

    thrown = door.run(run)
    view = {"broadcast_id": thrown.broadcast_id, "delivered": thrown.delivered}
    door.out.answer(view, f"broadcast {thrown.broadcast_id}: {thrown.delivered} woken")
