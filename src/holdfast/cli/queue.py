"""`holdfast queue list`, `pause` and `resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.target import Target, connected

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.deployments import QueueView

MOST = 1_000
reason_option = click.option("--reason", default="", help="For people: shown with the pause, and recorded.")


@click.group()
def queue() -> None:
    """See what waits in queues; pause a queue and let it go on."""


@queue.command("list")
@connected
def list_(target: Target) -> None:
    """List queues in which something waits for a worker, and those that are paused. With --json, one object on each
    line."""
    from holdfast.transport.rest.system_views import queue_view

    async def run(client: Client) -> list[QueueView]:
        assert client.deployments is not None, "the client of a command has all nouns"
        return await client.deployments.queues(client.org, MOST)

    found = target.read(run)
    if target.out.as_json:
        for one in found:
            target.out.item(queue_view(one))
        return
    headers = ("QUEUE", "TURNS", "TASKS", "WAITING SINCE", "STATE")
    target.out.table(headers, [_row(one) for one in found], empty="nothing waits, and nothing is paused")


def _row(found: QueueView) -> list[Shown]:
    from holdfast.cli.formatting import since
    from holdfast.cli.output import Cell

    state = Cell("open", "green")
    if found.pause is not None:
        why = f": {found.pause.reason}" if found.pause.reason else ""
        state = Cell(f"paused since {since(found.pause.since_at)}{why}", "yellow")
    waits = "" if found.since_at is None else since(found.since_at)
    return [found.queue, str(found.turns), str(found.tasks), Cell(waits, "dim"), state]


@queue.command()
@click.argument("name", metavar="QUEUE")
@reason_option
@connected
def pause(target: Target, name: str, *, reason: str) -> None:
    """Hand out nothing of QUEUE, on any node, until it is resumed. What runs goes on; everything is still accepted."""

    async def run(client: Client) -> bool:
        return await client.pause_queue(name, reason=reason)

    changed = target.run(run)
    told = "is paused" if changed else "was paused before"
    target.out.answer({"queue": name, "paused": True, "changed": changed}, f"queue {name} {told}")


@queue.command()
@click.argument("name", metavar="QUEUE")
@connected
def resume(target: Target, name: str) -> None:
    """Hand out what waits in QUEUE again."""

    async def run(client: Client) -> bool:
        return await client.resume_queue(name)

    changed = target.run(run)
    told = "goes on" if changed else "was not paused"
    target.out.answer({"queue": name, "paused": False, "changed": changed}, f"queue {name} {told}")
