"""`holdfast workflow watch`: follows an execution, and whatever goes on in its place, until it ends.

It is told of events as they are committed: by a server with server-sent events, by a database as an engine is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.exit_codes import NO_RESULT
from holdfast.cli.inputs import LENGTH
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.model.events import HistoryEvent


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--timeout", type=LENGTH, help="Stop watching after this long.")
@connected
def watch(target: Target, id_: str, *, after: int, timeout: float | None) -> None:
    """Show the events of ID as they come, until it ends. With --json, one object on each line.

    Ends with 0 when it has completed, with 5 when it has ended otherwise.
    """
    from holdfast.client.calls import within

    async def run(client: Client) -> bool:
        execution = await found(client, id_)
        return await within(follow(target, client, execution.id, after), timeout)

    if not target.run(run):
        raise click.exceptions.Exit(NO_RESULT)


async def follow(target: Target, client: Client, execution_id: str, after: int) -> bool:
    """Whether it has completed."""
    from holdfast.client.successors import successor_of
    from holdfast.model.events import WorkflowCompleted

    while True:
        last = await _until_closed(target, client, execution_id, after)
        successor = successor_of(last.body)
        if successor is None:
            return isinstance(last.body, WorkflowCompleted)
        if not target.out.as_json:
            target.out.heading(f"goes on as {successor}")
        execution_id, after = successor, 0


async def _until_closed(target: Target, client: Client, execution_id: str, after: int) -> HistoryEvent:
    """Tells every event once; the last one."""
    from holdfast.cli.history_text import HistoryText
    from holdfast.transport.rest.events import event_view

    history_text = HistoryText()
    if after:  # of what lies before, only the names are needed; if all of it is asked for, also the end
        for event in await client.history(execution_id, limit=after):
            history_text.what(event.body)
            if event.body.TERMINAL:
                return event
    async for events in client.executions.follow(client.org, execution_id, after):
        for event in events:
            if target.out.as_json:
                target.out.item(event_view(event))
            else:
                number, at, kind, what = history_text.row(event)
                target.out.line(f"{number.text:>5}  ", at, "  ", kind._replace(text=f"{kind.text:<24}"), "  ", what)
            if event.body.TERMINAL:
                return event
    raise AssertionError("a history that is followed ends with the end")
