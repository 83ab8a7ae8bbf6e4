"""`holdfast workflow watch`: follows an execution, and whatever goes on in its place, until it ends.

It is told of events as they are committed: by a server with server-sent events, by a database as an engine is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected, found
from holdfast.cli.exits import NO_RESULT
from holdfast.cli.inputs import LENGTH

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.model.events import HistoryEvent


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--timeout", type=LENGTH, help="Stop watching after this long.")
@connected
def watch(door: Door, id_: str, *, after: int, timeout: float | None) -> None:
    """Show the events of ID as they come, until it ends. With --json, one object on each line.

    Ends with 0 when it has completed, with 5 when it has ended otherwise.
    """
    from holdfast.client.calls import within

    async def run(client: Client) -> bool:
        execution = await found(client, id_)
        return await within(follow(door, client, execution.id, after), timeout)

    if not door.run(run):
        raise click.exceptions.Exit(NO_RESULT)


async def follow(door: Door, client: Client, execution_id: str, after: int) -> bool:
    """Whether it has completed."""
    from holdfast.model.events import WorkflowCompleted

    while True:
        last = await _until_closed(door, client, execution_id, after)
        successor = getattr(last.body, "new_execution_id", None) or getattr(last.body, "successor", None)
        if successor is None:
            return isinstance(last.body, WorkflowCompleted)
        if not door.out.as_json:
            door.out.heading(f"goes on as {successor}")
        execution_id, after = successor, 0


async def _until_closed(door: Door, client: Client, execution_id: str, after: int) -> HistoryEvent:
    """Tells every event once; the last one."""
    from holdfast.cli.story import Story
    from holdfast.contract.history import StreamHistory

    story = Story()
    if after:  # of what lies before, only the names are needed; if all of it is asked for, also the end
        for event in await client.history(execution_id, limit=after):
            story.what(event.body)
            if event.body.TERMINAL:
                return event
    request = StreamHistory(org=client.org, workflow_execution_id=execution_id, after=after)
    async for entries in client.api.stream(request):
        for entry in entries:
            if door.out.as_json:
                door.out.item(entry)
            else:
                number, at, kind, what = story.row(entry.event)
                door.out.line(f"{number.text:>5}  ", at, "  ", kind._replace(text=f"{kind.text:<24}"), "  ", what)
        if entries[-1].event.body.TERMINAL:
            return entries[-1].event
    raise AssertionError("a history that is followed ends with the end")
