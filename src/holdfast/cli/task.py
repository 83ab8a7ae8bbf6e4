"""`holdfast task list`, `complete` and `fail`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected, found
from holdfast.cli.inputs import JSON
from holdfast.cli.promise import show_settled

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.model.executions import TaskRow

HEADERS = ("#", "TASK", "QUEUE", "ATTEMPT", "STATE", "WORKER", "LAST FAILURE")


@click.group()
def task() -> None:
    """Look at tasks that are not finished; complete or fail one by its token."""


@task.command("list")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--limit", "-n", type=click.IntRange(0), default=100, show_default=True, help="0 for all.")
@connected
def list_(door: Door, id_: str | None, *, limit: int) -> None:
    """List the unfinished tasks of the execution ID, or of all open ones. With --json, one object on each line."""
    from holdfast.wire.rest.views import task_view

    async def run(client: Client) -> None:
        rows: list[list[Shown]] = []
        more = False
        async for execution_id, task in _tasks(client, id_):
            if limit and len(rows) == limit:
                more = True
                break
            rows.append([execution_id, *row(task)])
            if door.out.as_json:
                door.out.item(task_view(task))
        if not door.out.as_json:
            door.out.table(("WORKFLOW ID", *HEADERS), rows, empty="no task is queued or running")
        if more:
            door.out.note(f"there are more than these {limit}: --limit 0 shows all")

    door.look(run)


async def _tasks(client: Client, id_: str | None) -> AsyncIterator[tuple[str, TaskRow]]:
    from holdfast.cli.workflow.listing import executions

    if id_ is not None:
        execution = await found(client, id_)
        for task in await client.executions.tasks(client.org, execution.id):
            yield execution.workflow_id, task
        return
    async for execution in executions(client, 0, only_open=True):
        if execution.open_tasks:
            for task in await client.executions.tasks(client.org, execution.id):
                yield execution.workflow_id, task


def row(task: TaskRow) -> list[Shown]:
    from holdfast.cli.output import Cell
    from holdfast.cli.words import failure, task_state

    limit = "" if task.retry.max_attempts is None else f"/{task.retry.max_attempts}"
    return [
        str(task.task_no),
        task.kind,
        task.queue,
        f"{task.attempt}{limit}",
        task_state(task),
        Cell(task.worker or "", "dim"),
        Cell(failure(task.last_failure), "red"),
    ]


@task.command()
@click.argument("token")
@click.option("--input", "input_", type=JSON, help="Its result.")
@click.option("--idempotency-key", metavar="KEY", help="The same call again with this key does nothing twice.")
@connected
def complete(door: Door, token: str, *, input_: Any, idempotency_key: str | None) -> None:
    """Complete the task attempt that TOKEN stands for, with a result."""

    async def run(client: Client) -> Any:
        return await client.complete_promise(token, input_, idempotency_key=idempotency_key)

    show_settled(door, door.run(run))


@task.command()
@click.argument("token")
@click.option("--error", required=True, metavar="TEXT", help="Why it failed.")
@click.option("--idempotency-key", metavar="KEY", help="The same call again with this key does nothing twice.")
@connected
def fail(door: Door, token: str, *, error: str, idempotency_key: str | None) -> None:
    """Fail the task attempt that TOKEN stands for. It is tried again if its policy says so."""

    async def run(client: Client) -> Any:
        return await client.complete_promise(token, error=error, idempotency_key=idempotency_key)

    show_settled(door, door.run(run))
