"""`holdfast broadcast`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.client.broadcasts import BroadcastResult
    from holdfast.client.client import Client


@click.command()
@click.argument("name")
@click.option("--idempotency-key", metavar="KEY", help="The same key again is the same broadcast.")
@connected
def broadcast(target: Target, name: str, *, idempotency_key: str | None) -> None:
    """Wake everybody who waits for NAME now. Nothing is kept for those who come later."""

    async def run(client: Client) -> BroadcastResult:
        return await client.broadcast(name, idempotency_key=idempotency_key)

    thrown = target.run(run)
    view = {"broadcast_id": thrown.broadcast_id, "delivered": thrown.delivered}
    target.out.answer(view, f"broadcast {thrown.broadcast_id}: {thrown.delivered} woken")
