"""`holdfast workflow start`, `signal` and `signal-with-start`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.inputs import INSTANT, JSON, LENGTH, pairs
from holdfast.cli.target import Target, connected, found

if TYPE_CHECKING:
    from holdfast.client.client import Client

_START = (
    click.option("--input", "input_", type=JSON, help="The workflow's input."),
    click.option("--queue", default="default", show_default=True, help="Whose workers run it."),
    click.option("--priority", type=int, default=0, help="Higher goes first."),
    click.option("--version", "version", help="Which version of the kind; the newest one if left out."),
    click.option("--metadata", multiple=True, metavar="KEY=VALUE", callback=pairs, help="Tags to find it by."),
    click.option("--execution-timeout", type=LENGTH, help="End it when this has passed."),
    click.option("--start-at", type=INSTANT, help="Begin then, not now."),
    click.option(
        "--if-closed",
        type=click.Choice(["allow", "allow_if_failed", "reject"]),
        default="allow",
        help="What a workflow id means whose last execution is closed.",
    ),
    click.option("--idempotency-key", metavar="KEY", help="The same call again with this key starts nothing twice."),
)


def _startable(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_START):
        command = option(command)
    return command


@click.command()
@click.argument("kind")
@click.option("--workflow-id", metavar="ID", help="Your own key; at most one open execution has it.")
@click.option(
    "--if-running",
    type=click.Choice(["use_existing", "fail", "terminate"]),
    default="use_existing",
    help="What a workflow id means that has an open execution.",
)
@_startable
@click.option("--wait", is_flag=True, help="Wait for the end and print the result.")
@click.option("--timeout", type=LENGTH, help="How long to wait.")
@connected
def start(
    target: Target,
    kind: str,
    *,
    input_: Any,
    version: str | None,
    start_at: datetime | None,
    execution_timeout: float | None,
    wait: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Start a workflow of KIND. With the workflow id of an open execution, that one is found instead.

    \b
    holdfast workflow start order --workflow-id ORDER-1 --input '{"items": ["teapot"]}' --wait
    """
    from holdfast.cli.workflow.inspect import show_result
    from holdfast.transport.rest.views import StartView

    async def run(client: Client) -> None:
        handle = await client.start_workflow(
            kind, input_, version=version, start_at=start_at, execution_timeout=execution_timeout, **options
        )
        if wait:
            target.out.note(f"{_started_text(handle.created)} {handle.workflow_id} ({handle.id})")
            await show_result(target, client, handle.id, timeout)
            return
        view = StartView(
            workflow_execution_id=handle.id,
            workflow_id=handle.workflow_id or "",
            workflow_created=handle.created,
            idempotency_key_used=handle.idempotency_key_used,
            idempotency_key_new=handle.idempotency_key_new,
        )
        target.out.answer(view, f"{_started_text(handle.created)} {kind} {handle.workflow_id} ({handle.id})")

    target.run(run)


def _started_text(created: bool) -> str:
    return "started" if created else "found"


@click.command()
@click.argument("id_", metavar="ID")
@click.argument("name")
@click.option("--input", "input_", type=JSON, help="The signal's value.")
@click.option("--idempotency-key", metavar="KEY", help="The same call again with this key signals nothing twice.")
@connected
def signal(target: Target, id_: str, name: str, *, input_: Any, idempotency_key: str | None) -> None:
    """Send the signal NAME to the open execution ID. It is kept until the workflow reads it.

    \b
    holdfast workflow signal ORDER-1 shipped --input '{"tracking": "T-1"}'
    """
    from holdfast.transport.rest.views import SignalView

    async def run(client: Client) -> None:
        execution = await found(client, id_)
        answer = await client.signal_workflow(execution.id, name, input_, request_id=idempotency_key)
        view = SignalView(signal_event_sequence=answer.signal_event_sequence, signal_delivered=answer.signal_delivered)
        target.out.answer(view, f"signal {name!r} is event {answer.signal_event_sequence} of {execution.workflow_id}")

    target.run(run)


@click.command("signal-with-start")
@click.argument("workflow_id")
@click.argument("kind")
@click.argument("signal_name", metavar="SIGNAL")
@click.option("--signal-input", type=JSON, help="The signal's value.")
@_startable
@connected
def signal_with_start(
    target: Target,
    workflow_id: str,
    kind: str,
    signal_name: str,
    *,
    signal_input: Any,
    input_: Any,
    version: str | None,
    **options: Any,
) -> None:
    """Send SIGNAL to the open execution of WORKFLOW_ID; if there is none, start a workflow of KIND first.

    One step: it never happens that the workflow is started and the signal is lost.
    """
    from holdfast.transport.rest.views import SignalWithStartView

    async def run(client: Client) -> None:
        answer = await client.signal_with_start_workflow(
            workflow_id, kind, input_, signal_name=signal_name, signal_value=signal_input, version=version, **options
        )
        view = SignalWithStartView(**{name: getattr(answer, name) for name in SignalWithStartView.__struct_fields__})
        target.out.answer(
            view,
            f"{_started_text(answer.workflow_created)} {workflow_id} ({answer.workflow_execution_id}); "
            f"signal {signal_name!r} is its event {answer.signal_event_sequence}",
        )

    target.run(run)
