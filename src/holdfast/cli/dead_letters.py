"""`holdfast dead-letters list`, `redeliver` and `remove`: signals that were accepted and never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected, found

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.mailboxes import DeadLetter

_letter = (
    click.argument("id_", metavar="ID"),
    click.argument("sequence", metavar="SEQUENCE", type=click.IntRange(1)),
)


def _of_one(command: Any) -> Any:
    for argument in reversed(_letter):
        command = argument(command)
    return command


@click.group("dead-letters")
def dead_letters() -> None:
    """Look at signals that were accepted and never read; send them again, or have them listed no more."""


@dead_letters.command("list")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at most.")
@connected
def list_(door: Door, id_: str | None, *, limit: int) -> None:
    """List dead letters of the org, or of the one execution or workflow id ID, the newest first. With --json, one
    object on each line."""

    async def run(client: Client) -> list[DeadLetter]:
        execution = None if id_ is None else (await found(client, id_)).id
        return await client.dead_letters(execution, limit=limit)

    letters = door.look(run)
    if door.out.as_json:
        for letter in letters:
            door.out.item(letter)
        return
    headers = ("EXECUTION", "SEQUENCE", "SIGNAL", "RECEIVED", "REASON", "VALUE")
    door.out.table(headers, [_row(letter) for letter in letters], empty="there are none")


def _row(letter: DeadLetter) -> list[Shown]:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import day_time, value

    received = Cell(day_time(letter.received_at), "dim")
    shown = value(letter.signal_value)
    return [letter.execution_id, str(letter.seq), letter.signal_name, received, letter.reason, shown]


@dead_letters.command()
@_of_one
@click.option("--to", metavar="ID", help="To this execution or workflow id.")
@connected
def redeliver(door: Door, id_: str, sequence: int, *, to: str | None) -> None:
    """Send the dead letter SEQUENCE of ID to the open execution with the same workflow id, or to another."""
    from holdfast.contract.mailboxes import Redelivered, RedeliverSignal

    async def run(client: Client) -> Redelivered:
        source = (await found(client, id_)).id
        request = RedeliverSignal(org=client.org, workflow_execution_id=source, seq=sequence, to=to)
        return await client.api.call(request)

    done = door.run(run)
    door.out.answer(done, f"{done.workflow_execution_id} has received it as event {done.signal_event_sequence}")


@dead_letters.command()
@_of_one
@connected
def remove(door: Door, id_: str, sequence: int) -> None:
    """Have the dead letter SEQUENCE of ID listed no more. The signal stays in the history."""
    from holdfast.contract.mailboxes import RemoveDeadLetter

    async def run(client: Client) -> str:
        source = (await found(client, id_)).id
        request = RemoveDeadLetter(org=client.org, workflow_execution_id=source, seq=sequence)
        await client.api.call(request)
        return source

    source = door.run(run)
    view = {"workflow_execution_id": source, "sequence": sequence, "removed": True}
    door.out.answer(view, f"dead letter {sequence} of {source} is removed")
