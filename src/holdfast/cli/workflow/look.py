"""`holdfast workflow history`, `result` and `mailbox`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.doors import Door, connected, found
from holdfast.cli.inputs import LENGTH

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.contract.mailboxes import Mailbox, MailboxEntry

PAGE = 1_000


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--limit", "-n", type=click.IntRange(1), help="No more than this many.")
@connected
def history(door: Door, id_: str, *, after: int, limit: int | None) -> None:
    """Show the events of ID, line by line. With --json, one object on each line."""
    from holdfast.cli.story import HEADERS, Story
    from holdfast.contract.history import entry_of

    async def run(client: Client) -> None:
        execution = await found(client, id_)
        story = Story()
        rows = []
        last, left = after, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            events = await client.history(execution.id, after=last, limit=size)
            for event in events:
                if door.out.as_json:
                    door.out.item(entry_of(event))
                else:
                    rows.append(story.row(event))
            if len(events) < size:
                break
            last, left = events[-1].seq, None if left is None else left - size
        if not door.out.as_json:
            door.out.table(HEADERS, rows, empty=f"there are no events after {after}")

    door.look(run)


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--timeout", type=LENGTH, help="How long to wait; for ever if left out.")
@connected
def result(door: Door, id_: str, *, timeout: float | None) -> None:
    """Wait until ID has ended and print its result, a JSON value. With --json, also how it ended.

    If another execution goes on in its place, that one's result is meant. Ends with 5 if there is no result, with 8
    after --timeout.
    """

    async def run(client: Client) -> None:
        execution = await found(client, id_)
        await show_result(door, client, execution.id, timeout)

    door.run(run)


async def show_result(door: Door, client: Client, execution_id: str, timeout: float | None) -> None:
    """Print how an execution has ended. Raises ExecutionOutcome if it has no result, TimeoutError."""
    from typing import Any

    from msgspec import structs

    from holdfast.client.calls import within
    from holdfast.client.following import outcome_of
    from holdfast.client.views import result_of

    ended = await within(outcome_of(client.api, client.org, execution_id), timeout)
    if door.out.as_json:
        door.out.document(structs.replace(ended, workflow_execution_id=execution_id))
    result_of(ended, Any)
    if not door.out.as_json:
        door.out.json_text(bytes(ended.result))


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--limit", "-n", type=click.IntRange(1), default=100, show_default=True, help="How many at most.")
@click.option("--app", metavar="APP", help="On a database: where the code is, to ask the program what it has read.")
@connected
def mailbox(door: Door, id_: str, *, limit: int, app: str | None) -> None:
    """Show the signals that ID has not read, the oldest first; of a closed execution, its dead letters.

    What a program has read only the program knows. Without its code, signals that it has seen and left are not shown;
    a note says so.
    """
    import asyncio

    from holdfast.cli.workflow.call import with_code

    async def run() -> Mailbox:
        async with with_code(door, app) as client:
            execution = await found(client, id_)
            return await client.workflow(execution.id).mailbox(limit=limit)

    answer = asyncio.run(run())
    if door.out.as_json:
        door.out.document(answer)
    else:
        _draw_mailbox(door, answer)


def _ago(entry: MailboxEntry) -> str:
    from holdfast.cli.words import length
    from holdfast.model.values import MICRO

    return f"{length(int(entry.age_s * MICRO))} ago"


def _draw_mailbox(door: Door, answer: Mailbox) -> None:
    from holdfast.cli.words import value

    rows = [[str(one.seq), one.signal_name, _ago(one), one.reason or "", value(one.signal_value)] for one in answer]
    door.out.table(("#", "SIGNAL", "RECEIVED", "REASON", "VALUE"), rows, empty="nothing is unread")
    total = answer.total
    if total > len(rows):
        door.out.note(f"{total - len(rows)} more: --limit {total} shows all")
    if not answer.complete:
        door.out.note("no worker with its code could be asked: these are the ones that no turn has seen; try --app APP")
