"""`holdfast promise list`, `resolve`, `reject` and `complete`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import JSON
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.client.promises import SettledPromise
    from holdfast.model.messages import PromiseRow

_key = click.option("--idempotency-key", metavar="KEY", help="The same call again with this key settles nothing twice.")
_workflow = click.option("--workflow-id", metavar="ID", help="PROMISE is then the name of a promise of this workflow.")
_early = click.option("--allow-early", is_flag=True, help="Keep it for a promise that is not made yet.")


@click.group()
def promise() -> None:
    """Look at promises and settle them. PROMISE is a promise id, or with --workflow-id a name."""


@promise.command("list")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--limit", "-n", type=click.IntRange(0), default=100, show_default=True, help="0 for all.")
@connected
def list_(target: Target, id_: str | None, *, limit: int) -> None:
    """List the promises of the execution ID, or those that are open anywhere. With --json, one object on each line."""
    from holdfast.transport.rest.message_views import promise_view

    async def run(client: Client) -> None:
        rows: list[list[Shown]] = []
        more = False
        async for row in _promises(client, id_):
            if limit and len(rows) == limit:
                more = True
                break
            rows.append(_row(row))
            if target.out.as_json:
                target.out.item(promise_view(row))
        if not target.out.as_json:
            headers = ("PROMISE ID", "NAME", "STATE", "MADE", "SETTLED BY", "VALUE")
            target.out.table(headers, rows, empty="there are no promises")
        if more:
            target.out.note(f"there are more than these {limit}: --limit 0 shows all")

    target.read(run)


async def _promises(client: Client, id_: str | None) -> AsyncIterator[PromiseRow]:
    from holdfast.cli.workflow.listing import executions
    from holdfast.model.messages import PromiseState

    if id_ is not None:
        for row in await client.messages.promises(client.org, (await found(client, id_)).id):
            yield row
        return
    async for execution in executions(client, 0, only_open=True):
        for row in await client.messages.promises(client.org, execution.id):
            if row.state is PromiseState.PENDING:
                yield row


def _row(row: PromiseRow) -> list[Shown]:
    from holdfast.cli.formatting import day_time, failure, value
    from holdfast.cli.output import Cell

    settled = row.settled_by.by if row.settled_by is not None else ""
    shown = failure(row.failure) if row.failure is not None else value(row.value)
    pending = row.settled_at is None
    return [
        row.id,
        row.name,
        Cell(row.state.value, "cyan" if pending else ""),
        Cell(day_time(row.created_at), "dim"),
        settled,
        "" if pending else shown,
    ]


@promise.command()
@click.argument("promise_id", metavar="PROMISE")
@click.option("--input", "input_", type=JSON, help="Its value.")
@_workflow
@_early
@_key
@connected
def resolve(target: Target, promise_id: str, *, input_: Any, workflow_id: str | None, **options: Any) -> None:
    """Give PROMISE its value. The first settlement wins: a later one is answered with it and changes nothing."""

    async def run(client: Client) -> SettledPromise:
        if workflow_id is not None:
            return await client.resolve_promise_by_name(workflow_id, promise_id, input_, **options)
        return await client.resolve_promise(promise_id, input_, **options)

    show_settled(target, target.run(run))


@promise.command()
@click.argument("promise_id", metavar="PROMISE")
@click.option("--error", required=True, metavar="TEXT", help="What the workflow is told.")
@_workflow
@_early
@_key
@connected
def reject(target: Target, promise_id: str, *, error: str, workflow_id: str | None, **options: Any) -> None:
    """Reject PROMISE: its workflow gets the error at its await."""

    async def run(client: Client) -> SettledPromise:
        if workflow_id is not None:
            return await client.reject_promise_by_name(workflow_id, promise_id, error, **options)
        return await client.reject_promise(promise_id, error, **options)

    show_settled(target, target.run(run))


@promise.command()
@click.argument("token")
@click.option("--input", "input_", type=JSON, help="Its value.")
@click.option("--error", metavar="TEXT", help="Reject it instead.")
@_key
@connected
def complete(target: Target, token: str, *, input_: Any, error: str | None, idempotency_key: str | None) -> None:
    """Settle what TOKEN stands for: a promise, or an attempt of a task."""

    async def run(client: Client) -> SettledPromise:
        return await client.complete_promise(token, input_, error=error, idempotency_key=idempotency_key)

    show_settled(target, target.run(run))


def show_settled(target: Target, settled: SettledPromise) -> None:
    from holdfast.model.payloads import encode
    from holdfast.transport.rest.message_views import SettledView
    from holdfast.transport.rest.views import failure_view

    view = SettledView(
        promise_id=settled.promise_id,
        state=settled.state,
        already_resolved=settled.already_resolved,
        value=encode(settled.value, field="value"),
        failure=failure_view(settled.error),
        idempotency_key_used=settled.idempotency_key_used,
        idempotency_key_new=settled.idempotency_key_new,
    )
    first = "; somebody else was first, and nothing was changed" if settled.already_resolved else ""
    target.out.answer(view, f"{settled.promise_id} is {settled.state.lower().replace('_', ' ')}{first}")
