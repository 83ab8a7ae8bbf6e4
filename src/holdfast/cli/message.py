"""`holdfast message`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import JSON, LENGTH
from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.client.broadcasts import SendResult
    from holdfast.client.client import Client


@click.command()
@click.argument("name")
@click.argument("correlation_key", metavar="CORRELATION_KEY")
@click.option("--input", "input_", type=JSON, help="What the message says.")
@click.option("--expire-after", type=LENGTH, help="How long it is kept if nobody waits for it yet.")
@click.option("--idempotency-key", metavar="KEY", help="The same key again is the same message.")
@connected
def message(target: Target, name: str, correlation_key: str, *, input_: Any, **options: Any) -> None:
    """Give the message NAME to the one who has waited longest for it and CORRELATION_KEY. If nobody does, it is kept
    for the first who asks."""

    async def run(client: Client) -> SendResult:
        return await client.send_message(name, correlation_key, input_, **options)

    sent = target.run(run)
    became = "delivered" if sent.delivered else ("kept for the first who asks" if sent.retained else "nobody got it")
    target.out.answer(sent, f"message {sent.event_id}: {became}")
