"""`holdfast queue list`, `pause` and `resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.queues import QueueInfo

MOST = 1_000
reason_option = click.option("--reason", default="", help="For people: shown with the pause, and recorded.")


@click.group()
def queue() -> None:
    """See what waits in queues; pause a queue and let it go on."""


@queue.command("list")
@connected
def list_(door: Door) -> None:
    """List queues in which something waits for a worker, and those that are paused. With --json, one object on each
    line."""

    async def run(client: Client) -> list[QueueInfo]:
        return await client.list_queues(limit=MOST)

    found = door.look(run)
    if door.out.as_json:
        for one in found:
            door.out.item(one)
        return
    headers = ("QUEUE", "TURNS", "TASKS", "WAITING SINCE", "STATE")
    door.out.table(headers, [_row(one) for one in found], empty="nothing waits, and nothing is paused")


def _row(found: QueueInfo) -> list[Shown]:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import since

    state = Cell("open", "green")
    if found.pause is not None:
        why = f": {found.pause.reason}" if found.pause.reason else ""
        state = Cell(f"paused since {since(found.pause.since)}{why}", "yellow")
    waits = "" if found.waiting_since is None else since(found.waiting_since)
    return [found.name, str(found.turns), str(found.tasks), Cell(waits, "dim"), state]


@queue.command()
@click.argument("name", metavar="QUEUE")
@reason_option
@connected
def pause(door: Door, name: str, *, reason: str) -> None:
    """Hand out nothing of QUEUE, on any node, until it is resumed. What runs goes on; everything is still accepted."""

    async def run(client: Client) -> bool:
        return await client.pause_queue(name, reason=reason)

    changed = door.run(run)
    told = "is paused" if changed else "was paused before"
    door.out.answer({"queue": name, "paused": True, "changed": changed}, f"queue {name} {told}")


@queue.command()
@click.argument("name", metavar="QUEUE")
@connected
def resume(door: Door, name: str) -> None:
    """Hand out what waits in QUEUE again."""

    async def run(client: Client) -> bool:
        return await client.resume_queue(name)

    changed = door.run(run)
    told = "goes on" if changed else "was not paused"
    door.out.answer({"queue": name, "paused": False, "changed": changed}, f"queue {name} {told}")
