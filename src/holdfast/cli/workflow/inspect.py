"""`holdfast workflow history`, `result` and `mailbox`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.inputs import LENGTH
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.contract.executions import MailboxAnswer

PAGE = 1_000


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--limit", "-n", type=click.IntRange(1), help="No more than this many.")
@connected
def history(target: Target, id_: str, *, after: int, limit: int | None) -> None:
    """Show the events of ID, line by line. With --json, one object on each line."""
    from holdfast.cli.history_text import HEADERS, HistoryText
    from holdfast.transport.rest.events import event_view

    async def run(client: Client) -> None:
        execution = await found(client, id_)
        history_text = HistoryText()
        rows = []
        last, left = after, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            events = await client.history(execution.id, after=last, limit=size)
            for event in events:
                if target.out.as_json:
                    target.out.item(event_view(event))
                else:
                    rows.append(history_text.row(event))
            if len(events) < size:
                break
            last, left = events[-1].seq, None if left is None else left - size
        if not target.out.as_json:
            target.out.table(HEADERS, rows, empty=f"there are no events after {after}")

    target.read(run)


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--timeout", type=LENGTH, help="How long to wait; for ever if left out.")
@connected
def result(target: Target, id_: str, *, timeout: float | None) -> None:
    """Wait until ID has ended and print its result, a JSON value. With --json, also how it ended.

    If another execution goes on in its place, that one's result is meant. Ends with 5 if there is no result, with 8
    after --timeout.
    """

    async def run(client: Client) -> None:
        execution = await found(client, id_)
        await show_result(target, client, execution.id, timeout)

    target.run(run)


async def show_result(target: Target, client: Client, execution_id: str, timeout: float | None) -> None:
    """Print how an execution has ended. Raises ExecutionOutcome if it has no result, TimeoutError."""
    from typing import Any

    from holdfast.client.calls import within
    from holdfast.client.successors import outcome_of
    from holdfast.client.views import result_of
    from holdfast.transport.rest.views import result_view

    outcome = await within(outcome_of(client.executions, client.org, execution_id), timeout)
    view = result_view(execution_id, outcome)
    if target.out.as_json:
        target.out.document(view)
    result_of(outcome, Any)
    if not target.out.as_json:
        target.out.json_text(bytes(view.result))


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--limit", "-n", type=click.IntRange(1), default=100, show_default=True, help="How many at most.")
@click.option("--app", metavar="APP", help="On a database: where the code is, to ask the program what it has read.")
@connected
def mailbox(target: Target, id_: str, *, limit: int, app: str | None) -> None:
    """Show the signals that ID has not read, the oldest first; of a closed execution, its dead letters.

    What a program has read only the program knows. Without its code, signals that it has seen and left are not shown;
    a note says so.
    """
    import asyncio

    from holdfast.cli.workflow.call import with_code
    from holdfast.transport.rest.views import mailbox_view

    async def run() -> MailboxAnswer:
        async with with_code(target, app) as client:
            execution = await found(client, id_)
            return await client.executions.mailbox(client.org, execution.id, limit)

    answer = asyncio.run(run())
    if target.out.as_json:
        target.out.document(mailbox_view(answer))
    else:
        _draw_mailbox(target, answer)


def _draw_mailbox(target: Target, answer: MailboxAnswer) -> None:
    from holdfast.cli.formatting import length, value

    rows = [
        [str(one.seq), one.signal_name, f"{length(one.age)} ago", one.reason or "", value(one.signal_value)]
        for one in answer.signals
    ]
    target.out.table(("#", "SIGNAL", "RECEIVED", "REASON", "VALUE"), rows, empty="nothing is unread")
    total = sum(answer.counts.values())
    if total > len(rows):
        target.out.note(f"{total - len(rows)} more: --limit {total} shows all")
    if not answer.complete:
        target.out.note(
            "no worker with its code could be asked: these are the ones that no turn has seen; try --app APP"
        )
