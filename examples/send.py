"""Send something to a workflow of the demo, from another terminal.

Run it: `python -m examples.send conversation:ada "hello"` or `python -m examples.send ORDER-2 TRACK-42`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from examples.chat import say
from examples.order import Shipment
from examples.run import add_db_option, url_of
from holdfast import Client, Engine, HoldfastError


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.send", description="Send a signal to a workflow.")
    add_db_option(parser)
    parser.add_argument("workflow_id", help="conversation:NAME, or the number of an order")
    parser.add_argument("text", help='what to say ("bye" ends the conversation), or the tracking number of a parcel')
    options = parser.parse_args()
    if isinstance(options.db, Path) and not options.db.exists():
        sys.exit(f"there is no {options.db}: start the demo first (make run)")
    try:
        print(asyncio.run(send(options.db, options.workflow_id, options.text)))
    except HoldfastError as error:
        sys.exit(f"not sent: {error}")


async def send(db: Path | str, workflow_id: str, text: str) -> str:
    """An engine without workflows and tasks runs nothing; it only gives a client on the file."""
    async with Engine(url_of(db)) as engine:
        if workflow_id.startswith("conversation:"):
            await say(engine.client, workflow_id.removeprefix("conversation:"), text, end=text.lower() == "bye")
            return f"said {text!r} in {workflow_id}"
        return await _report_parcel(engine.client, workflow_id, text)


async def _report_parcel(client: Client, order_id: str, tracking: str) -> str:
    order = await client.find_workflow(order_id)
    sent = await order.signal("shipped", Shipment(tracking))
    return f"told {order_id} that it is shipped, event {sent.signal_event_sequence} of its history"


if __name__ == "__main__":
    main()
