"""`holdfast workflow cancel`, `terminate`, `resume`, `retry`, `reset` and `fork`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exit_codes import ANSWER_IS_NO
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.client.handles import WorkflowHandle

_reason = click.option("--reason", default="", help="For the history.")
_key = click.option("--idempotency-key", metavar="KEY", help="The same call again with this key does nothing twice.")
_reapply = "Whether signals and updates that came after that event are received again."


def _end(target: Target, changed: bool, done: str, otherwise: str) -> None:
    from holdfast.transport.rest.views import ChangedView

    target.out.answer(ChangedView(changed=changed), done if changed else otherwise)
    if not changed:
        raise click.exceptions.Exit(ANSWER_IS_NO)


@click.command()
@click.argument("id_", metavar="ID")
@_reason
@connected
def cancel(target: Target, id_: str, *, reason: str) -> None:
    """Ask ID to stop: its code is told at its await and may clean up. Ends with 1 if that changes nothing."""

    async def run(client: Client) -> bool:
        return await client.cancel_workflow((await found(client, id_)).id, reason)

    _end(
        target,
        target.run(run),
        f"{id_} is asked to cancel",
        f"{id_} is closed, or was asked before: nothing was changed",
    )


@click.command()
@click.argument("id_", metavar="ID")
@_reason
@connected
def terminate(target: Target, id_: str, *, reason: str) -> None:
    """End ID at once; its code is not asked. Ends with 1 if it is closed already."""

    async def run(client: Client) -> bool:
        return await client.terminate_workflow((await found(client, id_)).id, reason)

    _end(target, target.run(run), f"{id_} is terminated", f"{id_} is closed already: nothing was changed")


@click.command()
@click.argument("id_", metavar="ID")
@connected
def resume(target: Target, id_: str) -> None:
    """Let ID, which is stuck, be tried again now. Ends with 1 if it is not stuck."""

    async def run(client: Client) -> bool:
        return await client.workflow((await found(client, id_)).id).resume()

    _end(target, target.run(run), f"{id_} will be tried again now", f"{id_} is not stuck: nothing was changed")


def _show_new(target: Target, handle: WorkflowHandle, what: str) -> None:
    from holdfast.transport.rest.views import StartView

    view = StartView(
        workflow_execution_id=handle.id,
        workflow_id=handle.workflow_id or "",
        workflow_created=handle.created,
        idempotency_key_used=handle.idempotency_key_used,
        idempotency_key_new=handle.idempotency_key_new,
    )
    target.out.answer(view, f"{what} as {handle.workflow_id} ({handle.id})")


@click.command()
@click.argument("id_", metavar="ID")
@_reason
@_key
@connected
def retry(target: Target, id_: str, *, reason: str, idempotency_key: str | None) -> None:
    """Try ID, which has ended without a result, again from just before what ended it."""

    async def run(client: Client) -> WorkflowHandle:
        execution = await found(client, id_)
        return await client.retry_workflow(execution.id, reason=reason, request_id=idempotency_key)

    _show_new(target, target.run(run), "goes on")


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--to-event", type=click.IntRange(1), required=True, help="The last event that counts.")
@click.option("--reapply-signals/--drop-signals", default=True, show_default=True, help=_reapply)
@_reason
@_key
@connected
def reset(target: Target, id_: str, *, to_event: int, reason: str, idempotency_key: str | None, **options: Any) -> None:
    """Go on from an event of ID as if nothing after it had happened, in a new execution with the same workflow id.

    An open execution is terminated for it. The event must be one where a turn ends; the error names the nearest.
    """

    async def run(client: Client) -> WorkflowHandle:
        execution = await found(client, id_)
        return await client.reset_workflow(execution.id, to_event, reason=reason, request_id=idempotency_key, **options)

    _show_new(target, target.run(run), "goes on")


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--at-event", type=click.IntRange(1), required=True, help="The last event of the common past.")
@click.option("--workflow-id", metavar="ID", help="Of the new one; made up if left out.")
@click.option("--reapply-signals/--drop-signals", default=False, show_default=True, help=_reapply)
@_key
@connected
def fork(target: Target, id_: str, *, at_event: int, idempotency_key: str | None, **options: Any) -> None:
    """Begin another execution with the past of ID up to an event; ID itself is left alone."""

    async def run(client: Client) -> WorkflowHandle:
        execution = await found(client, id_)
        return await client.fork_workflow(execution.id, at_event, request_id=idempotency_key, **options)

    _show_new(target, target.run(run), "forked")
