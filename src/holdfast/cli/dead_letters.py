"""`holdfast dead-letters list`, `redeliver` and `remove`: signals that were accepted and never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.executions import DeadLetters
    from holdfast.model.executions import DeadLetter

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
def list_(target: Target, id_: str | None, *, limit: int) -> None:
    """List dead letters of the org, or of the one execution or workflow id ID, the newest first. With --json, one
    object on each line."""
    from holdfast.transport.rest.views import dead_letters_view

    async def run(client: Client) -> DeadLetters:
        execution = None if id_ is None else (await found(client, id_)).id
        return await client.executions.dead_letters(client.org, execution, limit)

    answer = target.read(run)
    if target.out.as_json:
        for view in dead_letters_view(answer).dead_letters:
            target.out.item(view)
        return
    headers = ("EXECUTION", "SEQUENCE", "SIGNAL", "RECEIVED", "REASON", "VALUE")
    target.out.table(headers, [_row(letter) for letter in answer.letters], empty="there are none")


def _row(letter: DeadLetter) -> list[Shown]:
    from holdfast.cli.formatting import day_time, value
    from holdfast.cli.output import Cell

    received = Cell(day_time(letter.received_at), "dim")
    shown = value(letter.signal_value)
    return [letter.execution_id, str(letter.seq), letter.signal_name, received, letter.reason, shown]


@dead_letters.command()
@_of_one
@click.option("--to", metavar="ID", help="To this execution or workflow id.")
@connected
def redeliver(target: Target, id_: str, sequence: int, *, to: str | None) -> None:
    """Send the dead letter SEQUENCE of ID to the open execution with the same workflow id, or to another."""
    from holdfast.contract.executions import RedeliverResult, RedeliverSignal
    from holdfast.transport.rest.views import RedeliveredView

    async def run(client: Client) -> RedeliverResult:
        source = (await found(client, id_)).id
        request = RedeliverSignal(org=client.org, workflow_execution_id=source, seq=sequence, to=to)
        return await client.executions.redeliver(request)

    done = target.run(run)
    view = RedeliveredView(
        workflow_execution_id=done.workflow_execution_id, signal_event_sequence=done.signal_event_sequence
    )
    target.out.answer(view, f"{done.workflow_execution_id} has received it as event {done.signal_event_sequence}")


@dead_letters.command()
@_of_one
@connected
def remove(target: Target, id_: str, sequence: int) -> None:
    """Have the dead letter SEQUENCE of ID listed no more. The signal stays in the history."""
    from holdfast.contract.executions import RemoveDeadLetter

    async def run(client: Client) -> str:
        source = (await found(client, id_)).id
        request = RemoveDeadLetter(org=client.org, workflow_execution_id=source, seq=sequence)
        await client.executions.remove_dead_letter(request)
        return source

    source = target.run(run)
    view = {"workflow_execution_id": source, "sequence": sequence, "removed": True}
    target.out.answer(view, f"dead letter {sequence} of {source} is removed")
