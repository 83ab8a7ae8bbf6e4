"""`holdfast task`: `start`, `show` and `cancel` for standalone tasks; `list`, `watch`, `complete`, `fail` for all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.doors import Door, connected, found
from holdfast.cli.inputs import INSTANT, JSON, LENGTH, pairs
from holdfast.cli.promise import show_settled
from holdfast.cli.task_watch import watch

if TYPE_CHECKING:
    from holdfast.cli.output import Shown
    from holdfast.client.client import Client
    from holdfast.contract.execution_reads import PendingTask
    from holdfast.contract.tasks import StandaloneTaskInfo

PAGE = 200
STATUS = click.Choice(
    ["PENDING", "RUNNING", "WAITING", "STUCK", "COMPLETED", "FAILED", "CANCELLED", "TERMINATED", "TIMED_OUT"],
    case_sensitive=False,
)
HEADERS = ("#", "TASK", "QUEUE", "ATTEMPT", "STATE", "WORKER", "LAST FAILURE")


@click.group()
def task() -> None:
    """Run a task on its own; look at tasks; complete or fail one by its token or its id."""


@task.command()
@click.argument("kind")
@click.option("--input", "args", type=JSON, multiple=True, help="An argument; several times for several.")
@click.option("--id", "task_id", metavar="ID", help="Your own key; at most one task that is not over has it.")
@click.option("--queue", default="default", show_default=True, help="Whose workers run it.")
@click.option("--priority", type=int, default=0, help="Higher goes first.")
@click.option("--max-attempts", type=click.IntRange(1), help="How often it is tried; without, until it succeeds.")
@click.option("--start-to-close", type=LENGTH, help="How long one attempt may take; one hour if left out.")
@click.option("--schedule-to-close", type=LENGTH, help="How long all attempts may take.")
@click.option("--heartbeat-timeout", type=LENGTH, help="How long its body may be silent.")
@click.option("--metadata", multiple=True, metavar="KEY=VALUE", callback=pairs, help="Tags to find it by.")
@click.option("--start-at", type=INSTANT, help="Begin then, not now.")
@click.option(
    "--if-running",
    type=click.Choice(["use_existing", "fail", "terminate"]),
    default="use_existing",
    help="What an id means whose task is not over.",
)
@click.option(
    "--if-closed",
    type=click.Choice(["allow", "allow_if_failed", "reject"]),
    default="allow",
    help="What an id means whose last task is over.",
)
@click.option("--idempotency-key", metavar="KEY", help="The same call again with this key starts nothing twice.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the result.")
@click.option("--timeout", type=LENGTH, help="How long to wait.")
@connected
def start(
    door: Door,
    kind: str,
    *,
    args: tuple[Any, ...],
    max_attempts: int | None,
    start_at: datetime | None,
    wait: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Run a task of KIND on its own, without a workflow. With the id of one that is not over, that one is found.

    \b
    holdfast task start send_invoice --id invoice:7 --input '{"order": 7}' --wait
    """
    from holdfast.contract.tasks import StartedTask
    from holdfast.model.values import RetryPolicy

    async def run(client: Client) -> None:
        retry = None if max_attempts is None else RetryPolicy(max_attempts=max_attempts)
        handle = await client.start_task(kind, *args, retry=retry, start_at=start_at, **options)
        began = "started" if handle.created else "found"
        told = f"{handle.task_id} ({handle.workflow_execution_id})"
        if wait:
            door.out.note(f"{began} {told}")
            await _show_result(door, client, handle.workflow_execution_id or "", timeout)
            return
        started = StartedTask(
            workflow_execution_id=handle.workflow_execution_id or "",
            task_id=handle.task_id,
            task_created=handle.created,
            idempotency_key_used=handle.idempotency_key_used,
            idempotency_key_new=handle.idempotency_key_new,
        )
        door.out.answer(started, f"{began} {kind} {told}")

    door.run(run)


async def _show_result(door: Door, client: Client, task_id: str, timeout: float | None) -> None:
    """Print how it has ended. Raises TaskFailed or ExecutionOutcome if it has no result, TimeoutError."""
    from holdfast.client.calls import within
    from holdfast.client.tasks import result_of_task
    from holdfast.contract.fields import FOREVER
    from holdfast.contract.tasks import GetTaskResult

    request = GetTaskResult(org=client.org, task_id=task_id, wait=FOREVER)
    ended = await within(client.api.call(request), timeout)
    if door.out.as_json:
        door.out.document(ended)
    result_of_task(ended, Any)
    if not door.out.as_json:
        door.out.json_text(bytes(ended.result))


@task.command()
@click.argument("id_", metavar="ID")
@connected
def show(door: Door, id_: str) -> None:
    """Show where the standalone task ID stands: its status, attempt, progress, last failure, worker and times."""
    from holdfast.contract.tasks import GetTask

    async def run(client: Client) -> None:
        task = await client.api.call(GetTask(org=client.org, task_id=id_))
        if door.out.as_json:
            door.out.document(task)
        else:
            _draw(door, task)

    door.look(run)


def _draw(door: Door, task: StandaloneTaskInfo) -> None:
    from holdfast.cli.output import Cell, status_cell
    from holdfast.cli.words import failure, since, value
    from holdfast.contract.instants import micros
    from holdfast.contract.records import raw

    out = door.out
    out.line(Cell(task.task_id, "bold"), "  ", status_cell(task.status))
    out.field("execution", task.workflow_execution_id)
    out.field("kind", f"{task.kind}, queue {task.queue}")
    out.field("arguments", ", ".join(value(raw(item)) for item in task.args) or "none")
    limit = "" if task.retry.max_attempts is None else f" of {task.retry.max_attempts}"
    out.field("attempt", f"{task.attempt}{limit}" if task.attempt else "none yet")
    if task.worker is not None:
        out.field("worker", task.worker)
    if task.progress is not None:
        out.field("progress", f"{task.progress:.0%}")
    if task.last_failure is not None:
        out.field("failure", Cell(failure(task.last_failure), "red"))
    for label, at in (
        ("created", task.created_at),
        ("started", task.started_at),
        ("heartbeat", task.heartbeat_at),
        ("next attempt", task.next_attempt_at),
        ("closed", task.closed_at),
    ):
        if at is not None:
            out.field(label, since(micros(at)))
    if task.closed_at is not None and task.last_failure is None:
        out.field("result", value(raw(task.result)))
    if task.deferred:
        out.field("next", f"holdfast task complete {task.task_id}")


@task.command()
@click.argument("id_", metavar="ID")
@click.option("--reason", default="", metavar="TEXT", help="For the history.")
@connected
def cancel(door: Door, id_: str, *, reason: str) -> None:
    """Stop the standalone task ID: a running body is told. Ends with 1 if it is over, or was asked before."""
    from holdfast.cli.exits import ANSWER_IS_NO
    from holdfast.contract.executions import Changed

    async def run(client: Client) -> bool:
        return await client.task(id_).cancel(reason)

    changed = door.run(run)
    otherwise = f"{id_} is over, or was asked before: nothing was changed"
    door.out.answer(Changed(changed), f"{id_} is asked to stop" if changed else otherwise)
    if not changed:
        raise click.exceptions.Exit(ANSWER_IS_NO)


@task.command("list")
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--limit", "-n", type=click.IntRange(0), default=100, show_default=True, help="0 for all.")
@click.option("--standalone", is_flag=True, help="Tasks that were run on their own, also those that are over.")
@click.option("--status", "-s", multiple=True, type=STATUS, help="With --standalone; also several times.")
@click.option("--kind", "-k", help="With --standalone: those of this kind.")
@click.option("--queue", help="With --standalone: those of this queue.")
@connected
def list_(door: Door, id_: str | None, *, limit: int, standalone: bool, **filters: Any) -> None:
    """List the unfinished tasks of the execution ID, or of all open ones; with --standalone, tasks that were run on
    their own, the newest first. With --json, one object on each line."""
    if standalone and id_ is not None:
        raise click.UsageError("--standalone lists tasks without an execution: leave ID out")
    if standalone:
        _list_standalone(door, limit, **filters)
        return
    if any(filters.values()):
        raise click.UsageError("--status, --kind and --queue are for --standalone")

    async def run(client: Client) -> None:
        rows: list[list[Shown]] = []
        more = False
        async for execution_id, task in _tasks(client, id_):
            if limit and len(rows) == limit:
                more = True
                break
            rows.append([execution_id, *row(task)])
            if door.out.as_json:
                door.out.item(task)
        if not door.out.as_json:
            door.out.table(("WORKFLOW ID", *HEADERS), rows, empty="no task is queued or running")
        if more:
            door.out.note(f"there are more than these {limit}: --limit 0 shows all")

    door.look(run)


def _list_standalone(door: Door, limit: int, *, status: tuple[str, ...], kind: str | None, queue: str | None) -> None:
    from holdfast.cli.output import Cell, status_cell
    from holdfast.cli.words import day_time, failure
    from holdfast.contract.instants import micros
    from holdfast.contract.tasks import ListTasks
    from holdfast.model.executions import Status

    statuses = tuple(Status(name.upper()) for name in status)

    async def run(client: Client) -> None:
        rows: list[list[Shown]] = []
        cursor: str | None = None
        while True:
            size = min(PAGE, limit - len(rows)) if limit else PAGE
            page = await client.api.call(
                ListTasks(org=client.org, statuses=statuses, kind=kind, queue=queue, cursor=cursor, limit=size)
            )
            for one in page.items:
                rows.append(
                    [
                        one.task_id,
                        status_cell(one.status),
                        one.kind,
                        one.queue,
                        str(one.attempt),
                        Cell(day_time(micros(one.created_at)), "dim"),
                        Cell(failure(one.last_failure), "red"),
                    ]
                )
                if door.out.as_json:
                    door.out.item(one)
            cursor = page.next_cursor
            if cursor is None or (limit and len(rows) >= limit):
                break
        if not door.out.as_json:
            headers = ("TASK ID", "STATUS", "TASK", "QUEUE", "ATTEMPT", "STARTED", "LAST FAILURE")
            door.out.table(headers, rows, empty=f"no standalone tasks match in org {door.org!r}")
        if cursor is not None:
            door.out.note(f"there are more than these {limit}: --limit 0 shows all")

    door.look(run)


async def _tasks(client: Client, id_: str | None) -> AsyncIterator[tuple[str, PendingTask]]:
    from holdfast.cli.workflow.listing import executions

    if id_ is not None:
        execution = await found(client, id_)
        for task in await client.workflow(execution.id).pending_tasks():
            yield execution.workflow_id, task
        return
    async for execution in executions(client, 0, only_open=True):
        if execution.open_tasks:
            for task in await client.workflow(execution.id).pending_tasks():
                yield execution.workflow_id, task


def row(task: PendingTask) -> list[Shown]:
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


def _is_token(given: str) -> bool:
    """And not the id of a standalone task."""
    from holdfast.model.tokens import PREFIX

    return given.startswith(PREFIX)


@task.command()
@click.argument("token", metavar="TOKEN|ID")
@click.option("--input", "input_", type=JSON, help="Its result.")
@click.option("--idempotency-key", metavar="KEY", help="The same call again with this key does nothing twice.")
@connected
def complete(door: Door, token: str, *, input_: Any, idempotency_key: str | None) -> None:
    """Complete the task attempt that TOKEN stands for, or that of the standalone task ID, with a result."""

    async def run(client: Client) -> Any:
        if not _is_token(token):
            return await client.task(token).complete(input_, idempotency_key=idempotency_key)
        return await client.complete_promise(token, input_, idempotency_key=idempotency_key)

    show_settled(door, door.run(run))


@task.command()
@click.argument("token", metavar="TOKEN|ID")
@click.option("--error", required=True, metavar="TEXT", help="Why it failed.")
@click.option("--idempotency-key", metavar="KEY", help="The same call again with this key does nothing twice.")
@connected
def fail(door: Door, token: str, *, error: str, idempotency_key: str | None) -> None:
    """Fail the task attempt that TOKEN stands for, or that of the standalone task ID. It is tried again if its policy
    says so."""

    async def run(client: Client) -> Any:
        if not _is_token(token):
            return await client.task(token).fail(error, idempotency_key=idempotency_key)
        return await client.complete_promise(token, error=error, idempotency_key=idempotency_key)

    show_settled(door, door.run(run))


task.add_command(watch)
